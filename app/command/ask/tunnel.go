// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// tunnel is a forwarded port: the API server connects it to the port of a pod. It opens no port on this machine, which
// other users of it could use.
type tunnel struct {
	cfg  *rest.Config
	port int // of the pod

	mu sync.Mutex
	// conn carries all connections, which are numbered.
	conn   httpstream.Connection
	number int
}

// open connects to the first of the instance's pods that exists.
func (t *tunnel) open(ctx context.Context, i *Instance) error {
	var err error
	for _, p := range i.pods {
		var conn httpstream.Connection
		if conn, err = dialPod(ctx, t.cfg, i.api, p); err == nil {
			t.conn, t.port = conn, p.port
			return nil
		}
		if !strings.Contains(err.Error(), "not found") {
			break
		}
	}
	return whyNoTunnel(ctx, i, err)
}

// dialPod opens a connection that carries streams: SPDY through a WebSocket, and plain SPDY for API servers and
// proxies without WebSockets, as kubectl does.
func dialPod(ctx context.Context, cfg *rest.Config, api kubernetes.Interface,
	p podPort) (httpstream.Connection, error) {
	at := api.CoreV1().RESTClient().Post().Resource("pods").Namespace(p.namespace).Name(p.name).
		SubResource("portforward").URL()
	dialer, err := newDialer(cfg, at)
	if err != nil {
		return nil, err
	}
	type result struct {
		conn httpstream.Connection
		err  error
	}
	done := make(chan result, 1)
	go func() { // the dialers take no context
		conn, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
		done <- result{conn, err}
	}()
	select {
	case r := <-done:
		return r.conn, r.err
	case <-ctx.Done():
		go func() {
			if r := <-done; r.err == nil {
				r.conn.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

func newDialer(cfg *rest.Config, at *url.URL) (httpstream.Dialer, error) {
	transport, upgrader, err := spdy.RoundTripperFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("client of the API server: %w", err)
	}
	plain := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, at)
	inWebSocket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(at, cfg)
	if err != nil {
		return nil, fmt.Errorf("client of the API server: %w", err)
	}
	return portforward.NewFallbackDialerForStreaming(inWebSocket, plain, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}

// whyNoTunnel names what the user lacks, if it is a right.
func whyNoTunnel(ctx context.Context, i *Instance, err error) error {
	if err == nil || len(i.pods) == 0 {
		return errors.New("it is not known which pod it is")
	}
	p := i.pods[0]
	if strings.Contains(err.Error(), "not found") {
		return fmt.Errorf("no pod %s was found; if it runs in a pod, name that with --scheduler-pod NAMESPACE/NAME",
			podNames(i.pods))
	}
	question := &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "create", Resource: "pods", Subresource: "portforward", Namespace: p.namespace, Name: p.name}}}
	review, asked := i.api.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, question, metav1.CreateOptions{})
	if asked == nil && !review.Status.Allowed {
		return fmt.Errorf("you may not create pods/portforward in namespace %s: bind the Role kumiki-viewer "+
			"(deploy/viewer.yaml), or give an address that you can reach with --scheduler-endpoint", p.namespace)
	}
	return err
}

func podNames(pods []podPort) string {
	var names []string
	for _, p := range pods {
		names = append(names, p.namespace+"/"+p.name)
	}
	return strings.Join(names, " or ")
}

// dial opens one connection through the tunnel: a stream of data, and one on which the kubelet reports why it could
// not connect (v1.StreamTypeError).
func (t *tunnel) dial(context.Context, string, string) (net.Conn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	headers := http.Header{}
	headers.Set(v1.StreamType, v1.StreamTypeError)
	headers.Set(v1.PortHeader, strconv.Itoa(t.port))
	headers.Set(v1.PortForwardRequestIDHeader, strconv.Itoa(t.number))
	t.number++
	failure, err := t.conn.CreateStream(headers)
	if err != nil {
		return nil, fmt.Errorf("forwarding a port: %w", err)
	}
	failure.Close() // nothing is written to it
	headers.Set(v1.StreamType, v1.StreamTypeData)
	data, err := t.conn.CreateStream(headers)
	if err != nil {
		t.conn.RemoveStreams(failure)
		return nil, fmt.Errorf("forwarding a port: %w", err)
	}
	c := &tunnelConn{Stream: data, of: t.conn, failure: failure, failed: make(chan struct{})}
	go c.awaitFailure()
	return c, nil
}

func (t *tunnel) close() { t.conn.Close() }

// tunnelConn is a net.Conn through a tunnel. Its deadlines do nothing: requests end with their context.
type tunnelConn struct {
	httpstream.Stream
	of      httpstream.Connection
	failure httpstream.Stream
	// failed is closed when the stream of failures has ended; why is then what was on it.
	failed chan struct{}
	why    string
	once   sync.Once
}

// failureTimeout bounds the wait for the kubelet's reason when the data ends.
const failureTimeout = time.Second

// awaitFailure reads why the kubelet could not connect, and then ends the data.
func (c *tunnelConn) awaitFailure() {
	text, _ := io.ReadAll(io.LimitReader(c.failure, 1<<16))
	c.why = strings.TrimSpace(string(text))
	close(c.failed)
	if c.why != "" {
		c.Stream.Reset()
	}
}

// Read reads data. After a failure it returns the kubelet's reason.
func (c *tunnelConn) Read(p []byte) (int, error) {
	n, err := c.Stream.Read(p)
	if err == nil || n > 0 {
		return n, err
	}
	select {
	case <-c.failed:
		if c.why != "" {
			return 0, errors.New("the port of the pod: " + c.why)
		}
	case <-time.After(failureTimeout): // a kubelet ends both streams
	}
	return n, err
}

// Close ends the connection; the tunnel stays open.
func (c *tunnelConn) Close() error {
	c.once.Do(func() {
		c.Stream.Reset()
		c.of.RemoveStreams(c.Stream, c.failure)
		c.failure.Reset()
	})
	return nil
}

type tunnelAddr struct{}

// Network and String name an end of the tunnel, which has no address.
func (tunnelAddr) Network() string { return "portforward" }
func (tunnelAddr) String() string  { return "portforward" }

// LocalAddr and the methods below complete net.Conn.
func (*tunnelConn) LocalAddr() net.Addr              { return tunnelAddr{} }
func (*tunnelConn) RemoteAddr() net.Addr             { return tunnelAddr{} }
func (*tunnelConn) SetDeadline(time.Time) error      { return nil }
func (*tunnelConn) SetReadDeadline(time.Time) error  { return nil }
func (*tunnelConn) SetWriteDeadline(time.Time) error { return nil }
