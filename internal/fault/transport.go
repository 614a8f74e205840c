// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// errCut is a connection that was closed on purpose.
var errCut = errors.New("fault: connection cut")

// Transport is a round tripper that obeys Rules.
type Transport struct {
	rules *Rules
	next  http.RoundTripper
}

// NewTransport returns a Transport in front of next. As a rest.Config's WrapTransport it strikes one client.
func NewTransport(rules *Rules, next http.RoundTripper) *Transport { return &Transport{rules, next} }

// resolver reads what a request is about from its path, as the API server does.
var resolver = &apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

func about(r *http.Request) asked {
	info, err := resolver.NewRequestInfo(r)
	if err != nil || !info.IsResourceRequest {
		return asked{}
	}
	return asked{info.Verb, info.Resource, info.Subresource, info.Namespace, info.Name}
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	what := about(r)
	rule := t.rules.forRequest(what)
	if rule == nil {
		resp, err := t.next.RoundTrip(r)
		return t.watched(what, r, resp, err)
	}
	fate := rule.request.Fate
	if fate.Wait > 0 && !pause(r.Context(), fate.Wait, nil) {
		return nil, r.Context().Err()
	}
	body, err := whole(r)
	if err != nil {
		return nil, err
	}
	var resp *http.Response
	switch fate.Apply {
	case Once:
		if resp, err = t.next.RoundTrip(with(r.Context(), r, body)); err != nil {
			return nil, err
		}
		if fate.Reply == Theirs {
			return t.watched(what, r, resp, nil)
		}
		discard(resp)
	case Late:
		t.later(with(context.WithoutCancel(r.Context()), r, body), fate.Later)
	}
	switch fate.Reply {
	case Status:
		return status(r, what, fate), nil
	case Silence:
		select {
		case <-r.Context().Done():
			return nil, r.Context().Err()
		case <-rule.gone:
		}
	}
	return nil, errCut
}

// lateness bounds a request whose client has been answered long ago.
const lateness = 30 * time.Second

// later carries a request out after d. Its result is dropped.
func (t *Transport) later(r *http.Request, d time.Duration) {
	time.AfterFunc(d, func() {
		ctx, cancel := context.WithTimeout(r.Context(), lateness)
		defer cancel()
		if resp, err := t.next.RoundTrip(r.WithContext(ctx)); err == nil {
			discard(resp)
		}
	})
}

// watched lets the events of a watch pass by the rules.
func (t *Transport) watched(what asked, r *http.Request, resp *http.Response, err error) (*http.Response, error) {
	if err != nil || what.verb != "watch" || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	if form := formOf(resp.Header.Get("Content-Type")); form != nil {
		resp.Body = newStream(r.Context(), t.rules, what.resource, form, resp.Body)
	}
	return resp, nil
}

// whole reads the body of a request, so that it can be sent at another time.
func whole(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the body of %s %s: %w", r.Method, r.URL.Path, err)
	}
	return body, nil
}

// with is the request with a body of its own.
func with(ctx context.Context, r *http.Request, body []byte) *http.Request {
	own := r.Clone(ctx)
	own.Body, own.ContentLength = http.NoBody, 0
	if len(body) > 0 {
		own.Body, own.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	return own
}

func discard(resp *http.Response) {
	// Only whether the request was carried out matters.
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	_ = resp.Body.Close()
}

// status is an answer of our own, in the form in which the API server would give it.
func status(r *http.Request, what asked, fate Fate) *http.Response {
	seconds := int(fate.RetryAfter / time.Second)
	said := apierrors.NewGenericServerResponse(fate.Code, what.verb, schema.GroupResource{Resource: what.resource}, what.name,
		"injected fault", seconds, true).ErrStatus
	said.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	body, err := json.Marshal(said)
	if err != nil {
		panic(fmt.Sprintf("fault: a status cannot be encoded: %v", err))
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if seconds > 0 {
		header.Set("Retry-After", strconv.Itoa(seconds))
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", fate.Code, http.StatusText(fate.Code)), StatusCode: fate.Code,
		Proto: r.Proto, ProtoMajor: r.ProtoMajor, ProtoMinor: r.ProtoMinor,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}
