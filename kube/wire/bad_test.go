// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// TestOldServers: HTTP/1.1, plain or over TLS, and a server that speaks JSON only, which says so.
func TestOldServers(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 {
			t.Errorf("got %s", r.Proto)
		}
		if r.Header.Get("Content-Type") != "application/json" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnsupportedMediaType)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"UnsupportedMediaType","code":415}`)
			return
		}
		created(w, r)
	}))
	defer plain.Close()
	for _, contentType := range []string{protobuf, "application/json"} {
		both := ways(t, &rest.Config{Host: plain.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: contentType}})
		typed, prepared := send(t, both["typed"]), send(t, both["prepared"])
		for i := range typed {
			alike(t, typed[i], prepared[i])
			if refused := apierrors.IsUnsupportedMediaType(prepared[i]); refused != (contentType == protobuf) {
				t.Errorf("%s: %v", contentType, prepared[i])
			}
		}
	}
	s := serve(t, created)
	cfg := s.config()
	cfg.NextProtos = []string{"http/1.1"}
	for way, w := range ways(t, cfg) { // order: each way alone
		for i, err := range send(t, w) {
			if got := s.taken(); err != nil || i == 0 && got[0].Proto != "HTTP/1.1" {
				t.Errorf("%s: %v, %+v", way, err, got)
			}
		}
	}
}

// TestSlowAnswers: an answer in pieces is an answer; one that breaks off, or is not there in time, leaves the outcome
// open, so that it is read back.
func TestSlowAnswers(t *testing.T) {
	pieces := func(end func(http.ResponseWriter, *http.Request)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			for _, piece := range []string{`{"kind":"Status",`, `"apiVersion":"v1",`, `"status":"Success"`} {
				_, _ = io.WriteString(w, piece)
				w.(http.Flusher).Flush()
				time.Sleep(20 * time.Millisecond)
			}
			end(w, r)
		}
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		open   bool
	}{
		"in pieces":     {pieces(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "}") }), false},
		"breaks off":    {pieces(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), true},
		"never ends":    {pieces(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }), true},
		"never answers": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, true},
	} {
		t.Run(name, func(t *testing.T) {
			for way, w := range ways(t, serve(t, c.answer).config()) { // order: each way alone
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				err := w.Bind(ctx, binding())
				cancel()
				if (err != nil) != c.open || c.open && !isOpen(err) {
					t.Errorf("%s: %v", way, err)
				}
			}
		})
	}
}

// counted is a transport that counts what is read of answers.
type counted struct {
	next http.RoundTripper
	read *int
}

func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := c.next.RoundTrip(r)
	if err == nil {
		answer.Body = &countedBody{answer.Body, c.read}
	}
	return answer, err
}

type countedBody struct {
	io.ReadCloser
	read *int
}

func (c *countedBody) Read(into []byte) (int, error) {
	n, err := c.ReadCloser.Read(into)
	*c.read += n
	return n, err
}

// TestLargeAnswers: of a status of 5 MB, or of an answer without end, a part is read; the code decides then.
func TestLargeAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		code  int
		size  int // bytes; 0 for no end
		check func(error) bool
	}{
		"a large conflict":  {http.StatusConflict, 5 << 20, apierrors.IsAlreadyExists},
		"a large not found": {http.StatusNotFound, 5 << 20, apierrors.IsNotFound},
		"a large success":   {http.StatusCreated, 5 << 20, func(err error) bool { return err == nil }},
		"an endless one":    {http.StatusForbidden, 0, apierrors.IsForbidden},
		"one that fits":     {http.StatusConflict, 1 << 20, apierrors.IsConflict},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(c.code)
				head := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,"message":"`
				_, err := io.WriteString(w, head)
				chunk := strings.Repeat("x", 64<<10)
				for sent := 0; err == nil && (c.size == 0 || sent < c.size); sent += len(chunk) {
					_, err = io.WriteString(w, chunk)
				}
				_, _ = io.WriteString(w, `"}`)
			})
			read := 0
			cfg := s.config()
			cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return counted{next, &read} })
			err := ways(t, cfg)["prepared"].Bind(t.Context(), binding())
			if !c.check(err) || read > maxAnswer+64<<10 {
				t.Errorf("%.200v after %d bytes", err, read)
			}
			if err != nil && name != "one that fits" && len(err.Error()) > maxText {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		})
	}
}

// TestGoAway: a server that ends each connection after an answer, by GOAWAY, loses no write and gets none twice.
func TestGoAway(t *testing.T) {
	const writes, atOnce = 200, 16
	var mu sync.Mutex
	times := map[string]int{}
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		times[r.URL.Path]++
		mu.Unlock()
		w.Header().Set("Connection", "close")
		created(w, r)
	})
	for way, w := range ways(t, s.config()) { // order: each way alone
		var all sync.WaitGroup
		for worker := range atOnce {
			all.Go(func() {
				for i := worker; i < writes; i += atOnce {
					b := binding()
					b.Name = fmt.Sprintf("%s-%d", way, i)
					if err := w.Bind(t.Context(), b); err != nil {
						t.Error(way, err)
					}
				}
			})
		}
		all.Wait()
	}
	for path, n := range times { // order: each must be one
		if n != 1 {
			t.Errorf("%s was sent %d times", path, n)
		}
	}
	if len(times) != 2*writes {
		t.Errorf("%d writes came, want %d", len(times), 2*writes)
	}
}
