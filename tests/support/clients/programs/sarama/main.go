// Members and transactional producers of sarama, driven by lines on standard input: see line_clients.py. The argument
// is the address.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

const limit = 30 * time.Second

// member is a consumer with the partitions of its session, and the first record that it has read.
type member struct {
	consumer sarama.ConsumerGroup
	stop     context.CancelFunc
	stopped  chan struct{}
	mutex    sync.Mutex
	session  sarama.ConsumerGroupSession
	owned    []string
	first    string
}

type clients struct {
	servers   []string
	members   map[string]*member
	producers map[string]sarama.SyncProducer
}

func main() {
	all := clients{strings.Split(os.Args[1], ","), map[string]*member{}, map[string]sarama.SyncProducer{}}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		result, err := all.perform(strings.Split(lines.Text(), " "))
		if err != nil {
			fmt.Println("error", strings.ReplaceAll(err.Error(), "\n", " "))
		} else {
			fmt.Println("ok", result)
		}
	}
}

func (all *clients) perform(words []string) (string, error) {
	one, producer := all.members[words[1]], all.producers[words[1]]
	switch words[0] {
	case "join":
		joined, err := all.join(words[2], words[4], words[5])
		all.members[words[1]] = joined
		return "", err
	case "owned":
		return one.wait(func() (string, bool) {
			return strings.Join(one.owned, " "), strconv.Itoa(len(one.owned)) == words[2]
		})
	case "first":
		return one.wait(func() (string, bool) { return one.first, one.first != "" })
	case "leave":
		one.stop()
		<-one.stopped
		return "", one.consumer.Close()
	case "producer":
		opened, err := sarama.NewSyncProducer(all.servers, transactional(words[2]))
		all.producers[words[1]] = opened
		return "", err
	case "begin":
		return "", producer.BeginTxn()
	case "send":
		_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: words[2], Value: sarama.StringEncoder(words[3])})
		return "", err
	case "commit":
		if producer != nil {
			return "", producer.CommitTxn()
		}
		return "", one.commit(words[2], words[3], words[4])
	case "abort":
		return "", producer.AbortTxn()
	case "read":
		return all.read(words[1], words[2])
	}
	return "", fmt.Errorf("unknown: %s", words[0])
}

func settings() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Metadata.RefreshFrequency = time.Second
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	config.Consumer.Group.Heartbeat.Interval = 100 * time.Millisecond
	return config
}

func transactional(id string) *sarama.Config {
	config := settings()
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Return.Successes = true
	config.Producer.Transaction.ID = id
	config.Net.MaxOpenRequests = 1
	return config
}

func (all *clients) join(group, instance, topic string) (*member, error) {
	config := settings()
	if instance != "-" {
		config.Consumer.Group.InstanceId = instance
	}
	consumer, err := sarama.NewConsumerGroup(all.servers, group, config)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	joined := &member{consumer: consumer, stop: stop, stopped: make(chan struct{})}
	go func() {
		defer close(joined.stopped)
		for ctx.Err() == nil {
			consumer.Consume(ctx, []string{topic}, joined)
		}
	}()
	return joined, nil
}

func (one *member) Setup(session sarama.ConsumerGroupSession) error {
	var owned []string
	for topic, partitions := range session.Claims() {
		for _, partition := range partitions {
			owned = append(owned, fmt.Sprintf("%s-%d", topic, partition))
		}
	}
	sort.Strings(owned)
	one.mutex.Lock()
	defer one.mutex.Unlock()
	one.session, one.owned = session, owned
	return nil
}

func (one *member) Cleanup(sarama.ConsumerGroupSession) error {
	one.mutex.Lock()
	defer one.mutex.Unlock()
	one.session, one.owned = nil, nil
	return nil
}

func (one *member) ConsumeClaim(_ sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		one.mutex.Lock()
		if one.first == "" {
			one.first = string(message.Value)
		}
		one.mutex.Unlock()
	}
	return nil
}

// wait returns the value of `get` once it is ready.
func (one *member) wait(get func() (string, bool)) (string, error) {
	for until := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		one.mutex.Lock()
		value, ready := get()
		one.mutex.Unlock()
		if ready {
			return value, nil
		}
		if time.Now().After(until) {
			return "", fmt.Errorf("not within %s: %q", limit, value)
		}
	}
}

func (one *member) commit(topic, partition, offset string) error {
	number, err := strconv.ParseInt(partition, 10, 32)
	if err != nil {
		return err
	}
	next, err := strconv.ParseInt(offset, 10, 64)
	if err != nil {
		return err
	}
	one.mutex.Lock()
	defer one.mutex.Unlock()
	one.session.MarkOffset(topic, int32(number), next, "")
	one.session.Commit()
	return nil
}

// read returns the first committed values of a topic.
func (all *clients) read(topic, count string) (string, error) {
	left, err := strconv.Atoi(count)
	if err != nil {
		return "", err
	}
	consumer, err := sarama.NewConsumer(all.servers, settings())
	if err != nil {
		return "", err
	}
	defer consumer.Close()
	partitions, err := consumer.Partitions(topic)
	if err != nil {
		return "", err
	}
	messages := make(chan *sarama.ConsumerMessage)
	for _, partition := range partitions {
		reading, err := consumer.ConsumePartition(topic, partition, sarama.OffsetOldest)
		if err != nil {
			return "", err
		}
		defer reading.AsyncClose()
		go func() {
			for message := range reading.Messages() {
				messages <- message
			}
		}()
	}
	var values []string
	for until := time.After(limit); left > 0; left-- {
		select {
		case message := <-messages:
			values = append(values, string(message.Value))
		case <-until:
			return "", fmt.Errorf("read %v within %s", values, limit)
		}
	}
	return strings.Join(values, " "), nil
}
