// Command kfake serves a cluster of franz-go's kfake with one broker and topic t. It prints its port and ends with its
// input. The argument is the number of partitions of t, 1 by default; a second one, tls, has it serve TLS.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"strconv"
	"time"

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
	options := []kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(int32(partitions), "t")}
	if len(os.Args) > 2 && os.Args[2] == "tls" {
		options = append(options, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{certificate()}}))
	}
	cluster, err := kfake.NewCluster(options...)
	if err != nil {
		panic(err)
	}
	_, port, _ := net.SplitHostPort(cluster.ListenAddrs()[0])
	fmt.Printf("{\"port\": %s}\n", port)
	_, _ = io.Copy(io.Discard, os.Stdin)
	cluster.Close()
}

// certificate returns one that is signed by itself, with a key of the kind that koordinator makes.
func certificate() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	chain, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{chain}, PrivateKey: key}
}
