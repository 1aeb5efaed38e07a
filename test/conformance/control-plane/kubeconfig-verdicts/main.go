// Command kubeconfig-verdicts prints what client-go reads from each kubeconfig of a folder, one JSON line per file.
package main

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"

	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"
)

type verdict struct {
	File       string `json:"file"`
	Server     string `json:"server,omitempty"`
	BasePath   string `json:"basePath,omitempty"`
	CA         string `json:"ca,omitempty"`
	Credential string `json:"credential,omitempty"`
	Error      string `json:"error,omitempty"`
}

func main() {
	folder := os.Args[1]
	files, err := filepath.Glob(filepath.Join(folder, "*.kubeconfig"))
	if err != nil {
		panic(err)
	}
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for _, file := range files {
		line := judge(file)
		line.File = strings.TrimSuffix(filepath.Base(file), ".kubeconfig")
		line.Error = strings.ReplaceAll(line.Error, folder, "")
		if err := out.Encode(line); err != nil {
			panic(err)
		}
	}
}

// judge loads a file as kubectl --kubeconfig does, and builds the TLS configuration and the URL of requests.
func judge(file string) verdict {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: file}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return verdict{Error: err.Error()}
	}
	url, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return verdict{Error: err.Error()}
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return verdict{Error: err.Error()}
	}
	// Checks the plugin without running it.
	of, err := config.TransportConfig()
	if err != nil {
		return verdict{Error: err.Error()}
	}
	if _, err := transport.TLSConfigFor(of); err != nil {
		return verdict{Error: err.Error()}
	}
	path := strings.TrimRight(filepath.Clean("/"+url.Path), "/")
	return verdict{Server: url.Scheme + "://" + url.Host, BasePath: path, CA: fingerprint(config.CAData), Credential: credential(config)}
}

func credential(config *rest.Config) string {
	switch {
	case config.Username != "" || config.Password != "":
		return "password"
	case config.BearerToken != "" || config.BearerTokenFile != "":
		return "token"
	case len(config.CertData) > 0 && len(config.KeyData) > 0:
		return "certificate"
	case config.ExecProvider != nil || config.AuthProvider != nil:
		return "plugin"
	}
	return "none"
}

// fingerprint returns the start of the SHA-256 of all certificates that x509.CertPool takes from the CA data.
func fingerprint(data []byte) string {
	hash := sha256.New()
	found := false
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" || len(block.Headers) > 0 {
			continue
		}
		if _, err := x509.ParseCertificate(block.Bytes); err == nil {
			hash.Write(block.Bytes)
			found = true
		}
	}
	if !found {
		return ""
	}
	return hex.EncodeToString(hash.Sum(nil)[:8])
}
