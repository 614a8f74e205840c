// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// Prepared is the Writes whose requests are prepared once per kind.
type Prepared struct{ binds, events *kind }

// kind is what all writes of one kind have in common.
type kind struct {
	client *http.Client
	// limiter is nil for no limit; the typed clients of the same connection share it.
	limiter flowcontrol.RateLimiter
	// timeout bounds a request with its repetitions; 0 for no bound.
	timeout  time.Duration
	warnings rest.WarningHandlerWithContext
	resolved *httptrace.ClientTrace

	resource schema.GroupResource
	empty    *http.Request // without URL, header and body
	headers  []header
	base     url.URL // of a request, without its path
	// The path is before, namespace, between, name, after; events have no name there.
	before, between, after string
	named                  bool    // there is a name in the path
	template               url.URL // for metrics
	encode                 func(object) ([]byte, error)
	contentType            string
	decoders               runtime.ClientNegotiator
}

// header is one header of each request.
type header struct {
	name  string
	value []string
}

// NewPrepared returns a Prepared that sends through the client of a configuration. set is the typed clients of the same
// client; limits of requests per second hold for both together.
func NewPrepared(cfg *rest.Config, client *http.Client, set kubernetes.Interface) (*Prepared, error) {
	binds, err := newKind(
		cfg, client, set.CoreV1().RESTClient(), v1.SchemeGroupVersion.WithKind("Binding"), "pods", "binding")
	if err != nil {
		return nil, err
	}
	events, err := newKind(
		cfg, client, set.EventsV1().RESTClient(), eventsv1.SchemeGroupVersion.WithKind("Event"), "events", "")
	if err != nil {
		return nil, err
	}
	return &Prepared{binds, events}, nil
}

// newKind prepares the writes of a kind to a resource, or, unless it is empty, to a subresource of its objects.
func newKind(cfg *rest.Config, client *http.Client, api rest.Interface, of schema.GroupVersionKind,
	resource, subresource string) (*kind, error) {
	k := &kind{client: client, limiter: api.GetRateLimiter(), timeout: client.Timeout, resolved: resolverTrace(),
		resource: schema.GroupResource{Group: of.Group, Resource: resource}, contentType: cfg.ContentType,
		decoders: runtime.NewClientNegotiator(
			rest.CodecFactoryForGeneratedClient(scheme.Scheme, scheme.Codecs).WithoutConversion(), of.GroupVersion())}
	if k.contentType == "" {
		k.contentType = runtime.ContentTypeJSON
	}
	var err error
	if k.encode, err = encoderFor(k.contentType, of, k.decoders); err != nil {
		return nil, fmt.Errorf("preparing writes of kind %s: %w", of.Kind, err)
	}
	switch {
	case cfg.WarningHandlerWithContext != nil:
		k.warnings = cfg.WarningHandlerWithContext
	case cfg.WarningHandler != nil:
		k.warnings = plainWarnings{cfg.WarningHandler}
	default:
		k.warnings = rest.WarningLogger{}
	}
	at := api.Post().Resource(resource).URL()
	k.base = url.URL{Scheme: at.Scheme, Host: at.Host, RawQuery: at.RawQuery}
	k.before, k.between = strings.TrimSuffix(at.Path, resource)+"namespaces/", "/"+resource
	k.template = url.URL{Scheme: at.Scheme, Host: at.Host, Path: k.before + "{namespace}" + k.between}
	if subresource != "" {
		k.named, k.between, k.after = true, k.between+"/", "/"+subresource
		k.template.Path += "/{name}" + k.after
	}
	k.empty = &http.Request{Method: http.MethodPost, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	k.headers = headersOf(cfg, k.contentType)
	return k, nil
}

// headersOf are the headers that client-go sets. With the user agent among them, the transport need not copy the
// request to set it.
func headersOf(cfg *rest.Config, contentType string) []header {
	accept := cfg.AcceptContentTypes
	if accept == "" {
		accept = contentType + ", */*"
	}
	all := []header{{"Accept", []string{accept}}, {"Content-Type", []string{contentType}}}
	if cfg.UserAgent != "" {
		all = append(all, header{"User-Agent", []string{cfg.UserAgent}})
	}
	return all
}

// plainWarnings is a handler of warnings that needs no context.
type plainWarnings struct{ rest.WarningHandler }

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (p plainWarnings) HandleWarningHeaderWithContext(_ context.Context, code int, agent, text string) {
	p.HandleWarningHeader(code, agent, text)
}

// Bind implements Writes.
func (p *Prepared) Bind(ctx context.Context, b *v1.Binding) error {
	return p.binds.write(ctx, b.Namespace, b.Name, b)
}

// CreateEvent implements Writes.
func (p *Prepared) CreateEvent(ctx context.Context, e *eventsv1.Event) error {
	return p.events.write(ctx, e.Namespace, "", e)
}

// write sends one object.
func (k *kind) write(ctx context.Context, namespace, name string, o object) error {
	path, err := k.path(namespace, name)
	if err != nil {
		return err
	}
	body, err := k.encode(o)
	if err != nil {
		return err
	}
	return k.send(ctx, outgoing{path, name, body})
}

// path is where an object is written to. Names come from the API server, but they must not lead to another resource.
func (k *kind) path(namespace, name string) (string, error) {
	if namespace == "" {
		return "", fmt.Errorf("writing %s: there is no namespace", k.resource)
	}
	if why := rest.IsValidPathSegmentName(namespace); len(why) > 0 {
		return "", fmt.Errorf("writing %s: namespace %q %s", k.resource, namespace, why[0])
	}
	if !k.named {
		return k.before + namespace + k.between, nil
	}
	if name == "" {
		return "", fmt.Errorf("writing %s in namespace %s: there is no name", k.resource, namespace)
	}
	if why := rest.IsValidPathSegmentName(name); len(why) > 0 {
		return "", fmt.Errorf("writing %s in namespace %s: name %q %s", k.resource, namespace, name, why[0])
	}
	return k.before + namespace + k.between + name + k.after, nil
}

// outgoing is a write that is ready to be sent, as often as needed.
type outgoing struct {
	path, name string
	body       []byte
}

// request makes the request of one try. The header is its own: a transport adds credentials to it.
func (k *kind) request(ctx context.Context, o outgoing) *http.Request {
	own := &struct {
		url  url.URL
		body sentBody
	}{url: k.base}
	own.url.Path = o.path
	own.body.Reset(o.body)
	r := k.empty.WithContext(ctx)
	r.URL, r.Body, r.ContentLength = &own.url, &own.body, int64(len(o.body))
	// A connection that ends with GOAWAY before the server has read the request makes the transport send it again.
	r.GetBody = func() (io.ReadCloser, error) {
		again := &sentBody{}
		again.Reset(o.body)
		return again, nil
	}
	r.Header = make(http.Header, len(k.headers)+1)
	for _, h := range k.headers {
		r.Header[h.name] = h.value
	}
	return r
}

// sentBody is a body in memory.
type sentBody struct{ bytes.Reader }

// Close implements io.Closer.
func (*sentBody) Close() error { return nil }
