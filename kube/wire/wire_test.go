// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/metrics"
)

// TestBothWaysSendTheSame: method, address, headers and body, in protobuf and JSON, below a path of a proxy, with a
// time limit, with long and with empty fields.
func TestBothWaysSendTheSame(t *testing.T) {
	s := serve(t, created)
	for name, change := range map[string]func(*rest.Config){
		"protobuf":      func(*rest.Config) {},
		"JSON":          func(c *rest.Config) { c.ContentType = "application/json" },
		"no types":      func(c *rest.Config) { c.ContentType, c.AcceptContentTypes = "application/json", "" },
		"behind a path": func(c *rest.Config) { c.Host += "/k8s/clusters/c-1/" },
		"a time limit":  func(c *rest.Config) { c.Timeout = 7 * time.Second },
		"a token":       func(c *rest.Config) { c.BearerToken = "t" },
		"no agent":      func(c *rest.Config) { c.UserAgent = "" },
		"impersonated":  func(c *rest.Config) { c.Impersonate.UserName = "u" },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := s.config()
			change(cfg)
			both := ways(t, cfg)
			got := map[string][]sent{}
			for way, w := range both { // order: each way alone
				for _, size := range []int{0, 1, 100, 200, 20_000} {
					b, e := binding(), event()
					b.Annotations["n"], e.Note = strings.Repeat("x", size), strings.Repeat("y", size)
					if err := w.Bind(t.Context(), b); err != nil {
						t.Error(way, err)
					}
					if err := w.CreateEvent(t.Context(), e); err != nil {
						t.Error(way, err)
					}
				}
				got[way] = s.taken()
			}
			if len(got["typed"]) != 10 || !reflect.DeepEqual(got["typed"], got["prepared"]) {
				t.Errorf("typed\n%.600q\nprepared\n%.600q", got["typed"], got["prepared"])
			}
		})
	}
}

// TestBothWaysFailAlike: what callers see of each answer.
func TestBothWaysFailAlike(t *testing.T) {
	status := func(code int, reason metav1.StatusReason) string {
		return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":"no","code":%d}`, reason, code)
	}
	for name, c := range map[string]struct {
		code        int
		contentType string
		body        string
	}{
		"conflict":             {409, "application/json", status(409, "Conflict")},
		"exists":               {409, "application/json", status(409, "AlreadyExists")},
		"gone":                 {404, "application/json", status(404, "NotFound")},
		"no version":           {404, "application/json", `{"kind":"Status","status":"Failure","reason":"NotFound","code":404}`},
		"protobuf":             {403, protobuf, "k8s\x00\n\x0c\n\x02v1\x12\x06Status\x12\x14\n\x06\n\x00\x12\x00\x1a\x00\x12\x07Failure\x1a\x01m0\x93\x03\x1a\x00\x22\x00"},
		"a success as failure": {500, "application/json", `{"kind":"Status","apiVersion":"v1","status":"Success","code":200}`},
		"another object":       {500, "application/json", `{"kind":"Pod","apiVersion":"v1"}`},
		"text":                 {503, "text/plain", "  down for maintenance\n"},
		"long text":            {502, "text/html; charset=utf-8", strings.Repeat("<p>", 5000)},
		"forbidden by a proxy": {403, "text/html", "<html>go away</html>"},
		"no type":              {500, "", "what"},
		"a wrong type":         {500, ";;", "what"},
		"an unknown type":      {500, "application/x-what", "what"},
		"broken JSON":          {500, "application/json", `{"kind":"Stat`},
		"nothing":              {500, "application/json", ""},
		"too many, now":        {429, "application/json", status(429, "TooManyRequests")},
		"media type":           {415, "application/json", status(415, "UnsupportedMediaType")},
		"too large":            {413, "text/plain", "limit is 3145728"},
		"unauthorized":         {401, "application/json", status(401, "Unauthorized")},
		"timeout":              {504, "application/json", status(504, "Timeout")},
		"an odd code":          {299, "application/json", ""},
		"not modified":         {304, "application/json", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Type"] = []string{c.contentType}
				if c.contentType == "" {
					w.Header()["Content-Type"] = nil
				}
				w.WriteHeader(c.code)
				_, _ = io.WriteString(w, c.body)
			})
			both := ways(t, s.config())
			typed, prepared := send(t, both["typed"]), send(t, both["prepared"])
			for i := range typed {
				if typed[i] == nil {
					t.Fatal("the answer is no error")
				}
				alike(t, typed[i], prepared[i])
			}
		})
	}
}

// TestLaterIsWaitedFor: an answer with Retry-After is followed by the same write, ten times at most.
func TestLaterIsWaitedFor(t *testing.T) {
	for _, c := range []struct {
		code, refused, sent int
		after               string
	}{
		{429, 2, 3, "0"}, {503, 1, 2, "0"}, {429, 100, 11, "0"}, {429, 1, 2, "-3"}, {429, 1, 1, "soon"}, {429, 1, 1, ""},
		{409, 1, 1, "0"},
	} {
		left := 0
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if left--; left < 0 {
				created(w, r)
				return
			}
			w.Header().Set("Retry-After", c.after)
			w.WriteHeader(c.code)
		})
		both := ways(t, s.config())
		var errs [2]error
		for i, way := range []string{"typed", "prepared"} {
			left = c.refused
			errs[i] = both[way].Bind(t.Context(), binding())
			if got := s.taken(); len(got) != c.sent {
				t.Errorf("%+v, %s: sent %d times, %v", c, way, len(got), errs[i])
			} else if got[0].Body != got[len(got)-1].Body {
				t.Errorf("%+v, %s: the body changed", c, way)
			}
		}
		alike(t, errs[0], errs[1])
	}
}

// TestAWaitEndsWithItsCaller: a server that asks for a thousand years, or for more seconds than a duration has.
func TestAWaitEndsWithItsCaller(t *testing.T) {
	for _, after := range []string{"31536000000", "9000000000000000000"} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", after)
			w.WriteHeader(http.StatusTooManyRequests)
		})
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		err := ways(t, s.config())["prepared"].Bind(ctx, binding())
		cancel()
		if sent := len(s.taken()); !isOpen(err) || sent != 1 {
			t.Errorf("Retry-After %s: sent %d times, %v", after, sent, err)
		}
	}
}

// isOpen reports whether an error leaves open whether the write was carried out.
func isOpen(err error) bool {
	_, said := err.(apierrors.APIStatus)
	return err != nil && !said
}

// TestNamesDoNotLeadElsewhere: a name with a slash is no way to another resource.
func TestNamesDoNotLeadElsewhere(t *testing.T) {
	s := serve(t, created)
	for way, w := range ways(t, s.config()) { // order: each way alone
		for _, c := range [][2]string{{"", "p"}, {"ns", ""}, {"ns", "p/status"}, {"..", "p"}, {"ns", ".."}, {"ns", "a%2fb"}} {
			b := binding()
			b.Namespace, b.Name = c[0], c[1]
			if err := w.Bind(t.Context(), b); !isOpen(err) {
				t.Errorf("%s, %q: %v", way, c, err)
			}
		}
		e := event()
		e.Namespace = "a/b"
		if err := w.CreateEvent(t.Context(), e); !isOpen(err) {
			t.Errorf("%s: %v", way, err)
		}
	}
	if got := s.taken(); len(got) != 0 {
		t.Errorf("sent %q", got)
	}
}

// tokens puts a new token into the header of each request that has none, in place, as the plugin for exec credentials
// of client-go does. It sends each body twice, as a transport does after GOAWAY.
type tokens struct {
	next  http.RoundTripper
	given *int
}

func (t tokens) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Authorization") == "" {
		*t.given++
		r.Header.Set("Authorization", fmt.Sprintf("Bearer %d", *t.given))
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	body, err := r.GetBody()
	if err != nil {
		return nil, err
	}
	r.Body = body
	return t.next.RoundTrip(r)
}

// TestCredentialsChange: each request has the credentials of its time, and a body that can be sent again.
func TestCredentialsChange(t *testing.T) {
	s := serve(t, created)
	given := 0
	cfg := s.config()
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return tokens{next, &given} })
	prepared := ways(t, cfg)["prepared"]
	for range 3 {
		if err := prepared.Bind(t.Context(), binding()); err != nil {
			t.Fatal(err)
		}
	}
	for i, got := range s.taken() {
		if want := fmt.Sprintf("Bearer %d", i+1); got.Header.Get("Authorization") != want || len(got.Body) == 0 {
			t.Errorf("request %d has %q, want %q, and a body of %d bytes", i, got.Header.Get("Authorization"), want, len(got.Body))
		}
	}
}

// TestLimitIsShared: the typed clients and the prepared requests of one client have one limit.
func TestLimitIsShared(t *testing.T) {
	s := serve(t, created)
	cfg := s.config()
	cfg.QPS, cfg.Burst = 0.001, 2
	both := ways(t, cfg)
	for _, way := range []string{"typed", "prepared"} {
		if err := both[way].Bind(t.Context(), binding()); err != nil {
			t.Fatal(way, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := both["prepared"].CreateEvent(ctx, event()); !isOpen(err) || len(s.taken()) != 2 {
		t.Errorf("past the limit: %v", err)
	}
}

// heard collects what is observed of requests.
type heard struct{ lines []string }

func (h *heard) note(form string, args ...any) { h.lines = append(h.lines, fmt.Sprintf(form, args...)) }

type results struct{ *heard }

func (r results) Increment(_ context.Context, code, method, host string) {
	r.note("result %s %s %s", code, method, host)
}

type retries struct{ *heard }

func (r retries) IncrementRetry(_ context.Context, code, method, host string) {
	r.note("retry %s %s %s", code, method, host)
}

type latencies struct {
	*heard
	what string
}

func (l latencies) Observe(_ context.Context, verb string, u url.URL, _ time.Duration) {
	l.note("%s %s %s", l.what, verb, u.String())
}

type sizes struct {
	*heard
	what string
}

func (s sizes) Observe(_ context.Context, verb, host string, size float64) {
	s.note("%s %s %s %v", s.what, verb, host, size)
}

// TestBothWaysAreCountedAlike: the metrics of client-go, of successes, repetitions, failures and lost connections.
func TestBothWaysAreCountedAlike(t *testing.T) {
	h := &heard{}
	result, retry, latency, limiter := metrics.RequestResult, metrics.RequestRetry, metrics.RequestLatency, metrics.RateLimiterLatency
	in, out := metrics.RequestSize, metrics.ResponseSize
	metrics.RequestResult, metrics.RequestRetry, metrics.RequestLatency = results{h}, retries{h}, latencies{h, "latency"}
	metrics.RateLimiterLatency, metrics.RequestSize, metrics.ResponseSize = latencies{h, "limiter"}, sizes{h, "request"}, sizes{h, "response"}
	t.Cleanup(func() {
		metrics.RequestResult, metrics.RequestRetry, metrics.RequestLatency, metrics.RateLimiterLatency = result, retry, latency, limiter
		metrics.RequestSize, metrics.ResponseSize = in, out
	})
	n := 0
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch n++; n {
		case 1:
			created(w, r)
		case 2:
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		case 3:
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, "a conflict")
		default:
			panic(http.ErrAbortHandler)
		}
	})
	cfg := s.config()
	cfg.QPS, cfg.Burst = 1000, 1000
	both := ways(t, cfg)
	got := map[string][]string{}
	for way, w := range both { // order: each way alone
		n, h.lines = 0, nil
		for range 3 {
			_ = w.Bind(t.Context(), binding())
		}
		_ = w.CreateEvent(t.Context(), event())
		slices.Sort(h.lines) // client-go observes the size of an answer after the latency
		got[way] = h.lines
	}
	if len(got["typed"]) < 15 || !reflect.DeepEqual(got["typed"], got["prepared"]) {
		t.Errorf("typed\n%s\nprepared\n%s", strings.Join(got["typed"], "\n"), strings.Join(got["prepared"], "\n"))
	}
}

// warned collects warnings.
type warned struct{ got []string }

func (w *warned) HandleWarningHeader(code int, _, text string) {
	w.got = append(w.got, fmt.Sprint(code, text))
}

// TestWarningsAreHandled: the API server warns in a header.
func TestWarningsAreHandled(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Warning", `299 - "old"`)
		w.Header().Add("Warning", `299 - "very old"`)
		created(w, r)
	})
	for _, way := range []string{"typed", "prepared"} {
		w := &warned{}
		cfg := s.config()
		cfg.WarningHandler = w
		if err := ways(t, cfg)[way].Bind(t.Context(), binding()); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(w.got, []string{"299old", "299very old"}) {
			t.Errorf("%s: %q", way, w.got)
		}
	}
}
