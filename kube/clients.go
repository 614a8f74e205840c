// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kumiki-scheduler/kumiki/kube/wire"
)

// ClientOptions say how the API server is reached.
type ClientOptions struct {
	Kubeconfig string
	// Master overrides the address in the kubeconfig.
	Master                          string
	AcceptContentTypes, ContentType string
	// QPS and Burst limit each client when they are not 0; negative QPS means no limit, as 0 does.
	QPS   float32
	Burst int
}

// Clients are the connections of a scheduler, each with a limit of its own: binds do not share with the big lists, the
// watches, status patches and the lease, and none of them with events.
type Clients struct {
	Binds, Watches, Events *kubernetes.Clientset
	// Dynamic is for objects of resource definitions; it shares the connection of Watches.
	Dynamic *dynamic.DynamicClient
	// BindWrites and EventWrites send prepared requests on the connections of Binds and Events.
	BindWrites, EventWrites *wire.Prepared
	transports              []*http.Client
}

// protobuf is the smaller and cheaper form of the API's types; JSON stays possible in answers.
const protobuf = "application/vnd.kubernetes.protobuf"

// RestConfig reads the kubeconfig, or the environment of a pod when none is named.
func RestConfig(o ClientOptions) (*rest.Config, error) {
	cfg, err := clientcmd.BuildConfigFromFlags(o.Master, o.Kubeconfig)
	if err != nil {
		if o.Kubeconfig != "" {
			return nil, fmt.Errorf("reading kubeconfig %s: %w", o.Kubeconfig, err)
		}
		return nil, fmt.Errorf("no kubeconfig given, and not inside a cluster: %w", err)
	}
	cfg.DisableCompression = true
	cfg.ContentType, cfg.AcceptContentTypes = o.ContentType, o.AcceptContentTypes
	if cfg.ContentType == "" {
		cfg.ContentType = protobuf
	}
	if cfg.AcceptContentTypes == "" {
		cfg.AcceptContentTypes = protobuf + ",application/json"
	}
	cfg.QPS, cfg.Burst = o.QPS, o.Burst
	if o.QPS <= 0 {
		cfg.QPS, cfg.Burst = -1, 0
	}
	from := o.Kubeconfig
	if from == "" {
		from = "the service account of the pod"
	}
	observeAccess(cfg, from)
	return cfg, nil
}

// NewClients connects. Nothing is sent yet.
func NewClients(cfg *rest.Config) (*Clients, error) {
	c := &Clients{}
	for _, each := range []struct {
		into  **kubernetes.Clientset
		agent string
	}{{&c.Binds, "scheduler"}, {&c.Watches, "scheduler-watches"}, {&c.Events, "scheduler-events"}} {
		own := rest.AddUserAgent(rest.CopyConfig(cfg), each.agent)
		if own.Dial == nil {
			// A dialer of its own is what makes client-go open a connection of its own.
			own.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
		}
		if each.into == &c.Watches {
			own.Wrap(func(next http.RoundTripper) http.RoundTripper { return readsAhead{next} })
		}
		transport, err := rest.HTTPClientFor(own)
		if err != nil {
			return nil, fmt.Errorf("client %s of %s: %w", each.agent, cfg.Host, err)
		}
		set, err := kubernetes.NewForConfigAndClient(own, transport)
		if err != nil {
			return nil, fmt.Errorf("client %s of %s: %w", each.agent, cfg.Host, err)
		}
		*each.into = set
		switch set {
		case c.Watches:
			c.Dynamic, err = dynamic.NewForConfigAndClient(own, transport)
		case c.Binds:
			c.BindWrites, err = wire.NewPrepared(own, transport, set)
		case c.Events:
			c.EventWrites, err = wire.NewPrepared(own, transport, set)
		}
		if err != nil {
			return nil, fmt.Errorf("client %s of %s: %w", each.agent, cfg.Host, err)
		}
		c.transports = append(c.transports, transport)
	}
	return c, nil
}

// Close ends idle connections. Call it when nothing is under way.
func (c *Clients) Close() {
	for _, t := range c.transports {
		t.CloseIdleConnections()
	}
}
