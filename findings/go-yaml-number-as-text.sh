#!/usr/bin/env bash
# sigs.k8s.io/yaml 1.6.0, with which Go programs read Kubernetes objects, writes a number or a boolean into a text field without an error, also with
# UnmarshalStrict, and not as it is spelled: octal becomes decimal, and what is no integer of 64 bits keeps some seven digits (a float32).
# encoding/json refuses the same object, as the API server does. The id of an AWS account that begins with a zero, without quotes, is thus another
# text in the program.
# Seen on 2026-11-29 with Go 1.26:
#   1.20: "1.2"
#   012345678901: "1.2345679e+10"
#   123456789012345678901234: "1.2345679e+23"
#   0123: "83"
#   off: "false"
#   encoding/json: json: cannot unmarshal number into Go struct field configMap.data of type string
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
go mod init example.com/finding 2>/dev/null
go get sigs.k8s.io/yaml@v1.6.0 2>/dev/null
cat >main.go <<'GO'
package main

import (
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"
)

type configMap struct {
	Data map[string]string `json:"data"`
}

func main() {
	for _, value := range []string{"1.20", "012345678901", "123456789012345678901234", "0123", "off"} {
		var object configMap
		if err := yaml.UnmarshalStrict([]byte("data: {key: "+value+"}"), &object); err != nil {
			panic(err)
		}
		fmt.Printf("%s: %q\n", value, object.Data["key"])
	}
	fmt.Println("encoding/json:", json.Unmarshal([]byte(`{"data": {"key": 1.20}}`), &configMap{}))
}
GO
go run . | tee seen
diff - seen <<'SEEN'
1.20: "1.2"
012345678901: "1.2345679e+10"
123456789012345678901234: "1.2345679e+23"
0123: "83"
off: "false"
encoding/json: json: cannot unmarshal number into Go struct field configMap.data of type string
SEEN
