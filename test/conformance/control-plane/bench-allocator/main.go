// The original's allocators over a bitmap, for tools/bench/allocator.ts:
//
//	bench-allocator RANGE FREE ROUNDS OPERATIONS
//
// RANGE is a CIDR or an interval of ports. Of FREE items one is free; 0: all are. Prints the nanoseconds of one allocation of the next
// item and its release, a line for each round.
package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/kubernetes/pkg/registry/core/service/ipallocator"
	"k8s.io/kubernetes/pkg/registry/core/service/portallocator"
	netutils "k8s.io/utils/net"
)

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

// operations of one range: allocate an item by its number, and allocate and release the next one.
type operations struct {
	allocate func(index int) error
	next     func()
	size     int
}

func addresses(cidr string) operations {
	_, network, err := net.ParseCIDR(cidr)
	must(network, err)
	allocator := must(ipallocator.NewInMemory(network))
	base := netutils.BigForIP(network.IP)
	return operations{
		allocate: func(index int) error { return allocator.Allocate(netutils.AddIPOffset(base, index+1)) },
		next:     func() { must(0, allocator.Release(must(allocator.AllocateNext()))) },
		size:     allocator.Free(),
	}
}

func ports(text string) operations {
	interval := *utilnet.ParsePortRangeOrDie(text)
	allocator := must(portallocator.NewInMemory(interval))
	return operations{
		allocate: func(index int) error { return allocator.Allocate(interval.Base + index) },
		next:     func() { must(0, allocator.Release(must(allocator.AllocateNext()))) },
		size:     allocator.Free(),
	}
}

func main() {
	open := ports
	if strings.Contains(os.Args[1], "/") {
		open = addresses
	}
	measured := open(os.Args[1])
	free := must(strconv.Atoi(os.Args[2]))
	for index := range measured.size {
		if free > 0 && index%free != 0 {
			must(0, measured.allocate(index))
		}
	}
	count := must(strconv.Atoi(os.Args[4]))
	for range must(strconv.Atoi(os.Args[3])) {
		started := time.Now()
		for range count {
			measured.next()
		}
		fmt.Println(float64(time.Since(started).Nanoseconds()) / float64(count))
	}
}
