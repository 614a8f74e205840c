// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// Client sends questions to one running scheduler.
type Client struct {
	http *http.Client
	base string // https://host:port
	// Holder is the identity in the lease, or the pod.
	Holder string
	tunnel *tunnel // nil for a direct connection
}

// Close ends the connections.
func (c *Client) Close() {
	c.http.CloseIdleConnections()
	if c.tunnel != nil {
		c.tunnel.close()
	}
}

// probeTimeout bounds the attempt to reach the scheduler's address. Addresses of another network do not answer at all.
const probeTimeout = 2 * time.Second

// Connect returns a client: by the address in the lease if it can be reached from here, else by a port that the API
// server forwards from the pod, which reaches a port on the pod's loopback address too.
//
// The address is only used if its certificate is that of the lease. So a process that happens to serve on the same
// address of this machine, which matters for loopback addresses, gets no credentials.
func (i *Instance) Connect(ctx context.Context) (*Client, error) {
	if i.through != "" {
		if i.endpoint.Address == "" {
			return nil, fmt.Errorf("--scheduler-endpoint needs the lease of the scheduler, which has the certificate "+
				"to check: %s has none", i.Holder)
		}
		return i.client(i.through, nil)
	}
	var direct error
	if i.endpoint.Address != "" {
		if direct = i.probe(ctx); direct == nil {
			return i.client(i.endpoint.Address, nil)
		}
	}
	t := &tunnel{cfg: i.cfg}
	err := t.open(ctx, i)
	if err == nil {
		return i.client(net.JoinHostPort(i.host(), fmt.Sprint(t.port)), t)
	}
	if direct != nil {
		return nil, fmt.Errorf("scheduler %s does not answer: its address %s cannot be reached from here (%w), and "+
			"the API server forwards no port of its pod: %w", i.Holder, i.endpoint.Address, direct, err)
	}
	return nil, fmt.Errorf("scheduler %s does not answer: the API server forwards no port of its pod: %w", i.Holder,
		err)
}

// host is the name or address for which the certificate is verified.
func (i *Instance) host() string {
	host, _, err := net.SplitHostPort(i.endpoint.Address)
	if err != nil {
		return "localhost"
	}
	return host
}

// probe makes a TLS connection to the address in the lease, without credentials.
func (i *Instance) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	check := &tls.Config{ServerName: i.host()}
	if len(i.endpoint.CA) > 0 {
		check.RootCAs = x509.NewCertPool()
		if !check.RootCAs.AppendCertsFromPEM(i.endpoint.CA) {
			return errors.New("the certificate in the lease cannot be read")
		}
	}
	conn, err := (&tls.Dialer{Config: check}).DialContext(ctx, "tcp", i.endpoint.Address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// client makes the client: the user's credentials, the scheduler's address and certificate.
//
// A pod without a certificate in a lease is not verified by TLS: the API server and the kubelet connect the tunnel to
// the pod that was named, as for kubectl port-forward. Without a tunnel, the certificate is always verified.
func (i *Instance) client(address string, t *tunnel) (*Client, error) {
	ours := rest.CopyConfig(i.cfg)
	ours.Host, ours.APIPath = "https://"+address, ""
	ours.Proxy = nil // the proxy in the kubeconfig is for the API server
	ours.Timeout = 0
	ours.TLSClientConfig.Insecure = i.insecure || t != nil && len(i.endpoint.CA) == 0
	ours.TLSClientConfig.CAFile, ours.TLSClientConfig.CAData = "", i.endpoint.CA
	ours.TLSClientConfig.ServerName = i.host()
	if t != nil {
		ours.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
		ours.Dial = t.dial
	}
	client, err := rest.HTTPClientFor(ours)
	if err != nil {
		if t != nil {
			t.close()
		}
		return nil, fmt.Errorf("client of the scheduler at %s: %w", address, err)
	}
	return &Client{http: client, base: strings.TrimSuffix(ours.Host, "/"), Holder: i.Holder, tunnel: t}, nil
}
