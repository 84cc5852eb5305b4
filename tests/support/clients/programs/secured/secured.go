// Reads three records of topic t in a group with franz-go, commits, and prints their values. The argument has the
// access as JSON: see test_security_of_programs.py.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

type access struct {
	Servers, Mechanism, User, Password, Token, CA, Key string
}

func main() {
	var given access
	check(json.Unmarshal([]byte(os.Args[1]), &given))
	client, err := kgo.NewClient(options(given)...)
	check(err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var values []string
	for len(values) < 3 {
		fetches := client.PollFetches(ctx)
		check(fetches.Err())
		fetches.EachRecord(func(record *kgo.Record) { values = append(values, string(record.Value)) })
	}
	check(client.CommitUncommittedOffsets(ctx))
	sort.Strings(values)
	fmt.Println(strings.Join(values, " "))
}

func options(given access) []kgo.Opt {
	found := []kgo.Opt{
		kgo.SeedBrokers(given.Servers), kgo.ConsumerGroup("g"), kgo.ConsumeTopics("t"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(),
	}
	switch given.Mechanism {
	case "PLAIN":
		found = append(found, kgo.SASL(plain.Auth{User: given.User, Pass: given.Password}.AsMechanism()))
	case "SCRAM-SHA-256":
		found = append(found, kgo.SASL(scram.Auth{User: given.User, Pass: given.Password}.AsSha256Mechanism()))
	case "SCRAM-SHA-512":
		found = append(found, kgo.SASL(scram.Auth{User: given.User, Pass: given.Password}.AsSha512Mechanism()))
	case "OAUTHBEARER":
		found = append(found, kgo.SASL(oauth.Auth{Token: given.Token}.AsMechanism()))
	}
	if given.CA == "" {
		return found
	}
	authority, err := os.ReadFile(given.CA)
	check(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	settings := &tls.Config{RootCAs: roots}
	if given.Key != "" {
		own, err := tls.LoadX509KeyPair(given.Key, given.Key)
		check(err)
		settings.Certificates = []tls.Certificate{own}
	}
	return append(found, kgo.DialTLSConfig(settings))
}

func check(err error) {
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
}
