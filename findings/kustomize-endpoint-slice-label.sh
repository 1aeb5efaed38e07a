#!/usr/bin/env bash
# kustomize (api 0.21.1, in kubectl 1.36) keeps the label kubernetes.io/service-name of an EndpointSlice when namePrefix renames the Service:
# the Service then has no endpoints. The label is the only relation between the two (Kubernetes documentation, "EndpointSlices"). Endpoints, which
# are related by name, follow the Service, and so do the names of Services in an Ingress.
# Seen on 2026-11-28, kind, name and label:
#   Service eu-database map[]
#   Endpoints eu-database map[]
#   EndpointSlice eu-database-1 map[kubernetes.io/service-name:database]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
go mod init example.com/finding 2>/dev/null
go get sigs.k8s.io/kustomize/api/krusty@v0.21.1 sigs.k8s.io/kustomize/kyaml@v0.21.1 2>/dev/null
cat >kustomization.yaml <<'YAML'
namePrefix: eu-
resources: [objects.yaml]
YAML
cat >objects.yaml <<'YAML'
apiVersion: v1
kind: Service
metadata: {name: database}
spec: {ports: [{port: 5432}]}
---
apiVersion: v1
kind: Endpoints
metadata: {name: database}
subsets: [{addresses: [{ip: 10.0.0.5}], ports: [{port: 5432}]}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: database-1, labels: {kubernetes.io/service-name: database}}
addressType: IPv4
endpoints: [{addresses: [10.0.0.5]}]
ports: [{port: 5432}]
YAML
cat >main.go <<'GO'
package main

import (
	"fmt"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func main() {
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), ".")
	if err != nil {
		panic(err)
	}
	for _, object := range objects.Resources() {
		fmt.Println(object.GetKind(), object.GetName(), object.GetLabels())
	}
}
GO
go run . | tee seen
diff - seen <<'SEEN'
Service eu-database map[]
Endpoints eu-database map[]
EndpointSlice eu-database-1 map[kubernetes.io/service-name:database]
SEEN
