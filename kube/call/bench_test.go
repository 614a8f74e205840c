// SPDX-License-Identifier: Apache-2.0

package call

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"

	"github.com/kumiki-scheduler/kumiki/timing"
)

// answered sends a request nowhere, and answers at once.
type answered struct{}

func (answered) RoundTrip(req *http.Request) (*http.Response, error) {
	trace := httptrace.ContextClientTrace(req.Context())
	if trace != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
	var buffer [512]byte
	for {
		if _, err := req.Body.Read(buffer[:]); err != nil {
			break
		}
	}
	if trace != nil {
		trace.WroteRequest(httptrace.WroteRequestInfo{})
	}
	return &http.Response{StatusCode: http.StatusCreated, Body: io.NopCloser(strings.NewReader(""))}, nil
}

// BenchmarkWrite is what one write costs, without and with its record. What the record costs is the difference.
func BenchmarkWrite(b *testing.B) {
	r := timing.New(timing.Options{})
	for _, form := range []string{"plain", "observed", "recorded"} {
		b.Run(form, func(b *testing.B) {
			t := http.RoundTripper(answered{})
			switch form {
			case "observed":
				t = NewAnswers(NewClock()).Observed(t)
			case "recorded":
				t = Recorded(NewClock(), r.Requested)(t)
			}
			req, err := http.NewRequest(http.MethodPost, "https://api/api/v1/namespaces/ns/pods/p/binding", nil)
			if err != nil {
				b.Fatal(err)
			}
			for _, h := range []string{"Accept", "Content-Type", "User-Agent", "Authorization"} {
				req.Header.Set(h, "value")
			}
			b.ReportAllocs()
			for b.Loop() {
				ctx := context.Background()
				if form == "recorded" {
					ctx = WithTrace(ctx, nil)
				}
				req := req.WithContext(ctx)
				req.Body = io.NopCloser(strings.NewReader("a binding"))
				answer, _ := t.RoundTrip(req)
				answer.Body.Close()
			}
		})
	}
}
