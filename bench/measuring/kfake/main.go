// Command kfake serves a cluster of franz-go's kfake with one broker. It prints its port and ends with its input.
package main

import (
	"fmt"
	"io"
	"net"
	"os"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		panic(err)
	}
	_, port, _ := net.SplitHostPort(cluster.ListenAddrs()[0])
	fmt.Printf("{\"port\": %s}\n", port)
	_, _ = io.Copy(io.Discard, os.Stdin)
	cluster.Close()
}
