// SPDX-License-Identifier: Apache-2.0

package call

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/kumiki-scheduler/kumiki/timing"
)

// answered answers at once.
type answered struct{}

func (answered) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusCreated, Body: io.NopCloser(strings.NewReader(""))}, nil
}

// BenchmarkWrite is what one write costs, without and with its record.
func BenchmarkWrite(b *testing.B) {
	r := timing.New(timing.Options{})
	for name, t := range map[string]http.RoundTripper{"plain": answered{},
		"recorded": Recorded(NewClock(), r.Requested)(answered{})} {
		b.Run(name, func(b *testing.B) {
			req, err := http.NewRequest(http.MethodPost, "https://api/api/v1/namespaces/ns/pods/p/binding", nil)
			if err != nil {
				b.Fatal(err)
			}
			for _, h := range []string{"Accept", "Content-Type", "User-Agent", "Authorization"} {
				req.Header.Set(h, "value")
			}
			b.ReportAllocs()
			for b.Loop() {
				ctx := WithTrace(context.Background(), nil)
				answer, _ := t.RoundTrip(req.WithContext(ctx))
				answer.Body.Close()
			}
		})
	}
}
