// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// defaultTimeout ends calls to extenders without a configured time-out.
const defaultTimeout = 5 * time.Second

// maxAnswer is the maximum size of a response in bytes. A response with whole nodes may be as long as the request,
// and somewhat longer.
func maxAnswer(sent int) int64 { return 16<<20 + 2*int64(sent) }

// client calls one extender.
type client struct {
	configv1.Extender
	http    *http.Client
	managed map[string]bool // resource -> managed by the extender; empty for one that handles all pods
}

func newClient(config configv1.Extender) (*client, error) {
	transport, err := transportFor(&config)
	if err != nil {
		return nil, fmt.Errorf("extender %q: %w", config.URLPrefix, err)
	}
	timeout := config.HTTPTimeout.Duration
	if timeout == 0 {
		timeout = defaultTimeout
	}
	c := &client{Extender: config, http: &http.Client{Transport: transport, Timeout: timeout},
		managed: map[string]bool{}}
	for _, r := range config.ManagedResources {
		c.managed[r.Name] = true
	}
	return c, nil
}

// transportFor follows the TLS settings. HTTPS without a certificate authority means that the server is not verified.
func transportFor(config *configv1.Extender) (*http.Transport, error) {
	var settings rest.Config
	if t := config.TLSConfig; t != nil {
		settings.TLSClientConfig = rest.TLSClientConfig{Insecure: t.Insecure, ServerName: t.ServerName,
			CertFile: t.CertFile, KeyFile: t.KeyFile, CAFile: t.CAFile, CertData: t.CertData, KeyData: t.KeyData,
			CAData: t.CAData}
	}
	if config.EnableHTTPS && settings.CAFile == "" && len(settings.CAData) == 0 {
		settings.Insecure = true
	}
	tlsConfig, err := rest.TLSConfigFor(&settings)
	if err != nil {
		return nil, err
	}
	return utilnet.SetTransportDefaults(&http.Transport{TLSClientConfig: tlsConfig}), nil
}

// call posts a request and reads the response.
func (c *client) call(ctx context.Context, verb string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	url := strings.TrimRight(c.URLPrefix, "/") + "/" + verb
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("failed %v with extender at URL %v, code %v", verb, url, resp.StatusCode)
	}
	if err := json.NewDecoder(&bounded{resp.Body, maxAnswer(len(body)), url}).Decode(answer); err != nil {
		return err
	}
	// The connection is only used again if the answer was read to its end. What is behind the value, such as a line
	// end, does not matter.
	_, _ = io.CopyN(io.Discard, resp.Body, endOfAnswer)
	return nil
}

// endOfAnswer is how many bytes are read behind the value of an answer, to find its end.
const endOfAnswer = 512

// bounded reads up to a number of bytes and fails beyond it.
type bounded struct {
	from io.Reader
	left int64
	url  string
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the answer of the extender at URL %v is too long", b.url)
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.from.Read(p)
	b.left -= int64(n)
	return n, err
}
