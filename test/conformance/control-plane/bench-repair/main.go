// The original's repair of cluster IPs, for tools/bench/repair.ts:
//
//	bench-repair KUBECONFIG CIDR PASSES json|protobuf
//
// Prints the milliseconds of each pass, a line each, and the peak of its memory in KB as the last.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/registry/core/service/ipallocator"
	"k8s.io/kubernetes/pkg/registry/core/service/ipallocator/controller"
)

// memory keeps the range as the original's storage does, without etcd.
type memory struct{ stored api.RangeAllocation }

func (m *memory) Get() (*api.RangeAllocation, error) { return m.stored.DeepCopy(), nil }

func (m *memory) CreateOrUpdate(next *api.RangeAllocation) error {
	m.stored = *next.DeepCopy()
	return nil
}

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func main() {
	config := must(clientcmd.BuildConfigFromFlags("", os.Args[1]))
	// As that of the API server to itself (NewLoopbackClientConfig): otherwise the client waits after ten requests.
	config.QPS = -1
	if os.Args[4] == "protobuf" {
		config.ContentType = "application/vnd.kubernetes.protobuf"
		config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	}
	_, network, err := net.ParseCIDR(os.Args[2])
	must(network, err)
	client := must(kubernetes.NewForConfig(config))
	known := must(ipallocator.NewInMemory(network))
	services := must(client.CoreV1().Services("").List(context.Background(), metav1.ListOptions{}))
	for _, service := range services.Items {
		must(0, known.Allocate(net.ParseIP(service.Spec.ClusterIP)))
	}
	registry := &memory{}
	must(0, known.Snapshot(&registry.stored))

	for range must(strconv.Atoi(os.Args[3])) {
		stop := make(chan struct{})
		repair := controller.NewRepair(time.Hour, client.CoreV1(), client.EventsV1(), network, registry, nil, nil)
		started := time.Now()
		repair.RunUntil(func() {
			fmt.Println(float64(time.Since(started).Microseconds()) / 1000)
			close(stop)
		}, stop)
	}
	// Maxrss would include what the parent had when it started this process.
	for line := range strings.Lines(string(must(os.ReadFile("/proc/self/status")))) {
		if after, found := strings.CutPrefix(line, "VmHWM:"); found {
			fmt.Println(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(after), "kB")))
		}
	}
}
