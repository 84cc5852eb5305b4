// Command kfake serves a cluster of franz-go's kfake with one broker and topic t. It prints its port and ends with its
// input. The argument is the number of partitions of t, 1 by default.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"strconv"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	partitions := int64(1)
	if len(os.Args) > 1 {
		var err error
		if partitions, err = strconv.ParseInt(os.Args[1], 10, 32); err != nil {
			panic(err)
		}
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(int32(partitions), "t"))
	if err != nil {
		panic(err)
	}
	_, port, _ := net.SplitHostPort(cluster.ListenAddrs()[0])
	fmt.Printf("{\"port\": %s}\n", port)
	_, _ = io.Copy(io.Discard, os.Stdin)
	cluster.Close()
}
