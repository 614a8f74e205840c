// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/tools/metrics"
	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/kube/call"
)

const (
	// repetitions is how often a write is sent again because the API server asked for it, as client-go does.
	repetitions = 10
	// longestRetryAfter bounds the wait that an answer may ask for, in seconds; the caller's time limit is shorter.
	longestRetryAfter = 3600
	// longWait is a wait for the limiter that is logged, as client-go does.
	longWait = 50 * time.Millisecond
)

// send sends a write until it is answered with anything but "later". Metrics are those of client-go.
func (k *kind) send(ctx context.Context, o outgoing) error {
	began := time.Now()
	defer func() { metrics.RequestLatency.Observe(ctx, http.MethodPost, k.template, time.Since(began)) }()
	if err := k.throttle(ctx, o); err != nil {
		return err
	}
	if k.timeout > 0 {
		limited, cancel := context.WithTimeout(ctx, k.timeout)
		defer cancel()
		ctx = limited
	}
	traced := httptrace.WithClientTrace(ctx, k.resolved)
	for try := 0; ; try++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		answer, err := k.client.Do(k.request(traced, o))
		k.count(ctx, o, answer, err, try > 0)
		if err != nil {
			return err
		}
		wait, later := retryAfter(answer)
		if !later || try >= repetitions {
			return k.read(ctx, o, answer)
		}
		closeAnswer(answer)
		klog.FromContext(ctx).V(4).Info("Got a Retry-After response", "delay", wait, "attempt", try+1, "url", o.path)
		if !call.Sleep(ctx, wait) {
			return ctx.Err()
		}
		if err := k.throttle(ctx, o); err != nil {
			return err
		}
	}
}

// throttle waits for the limiter.
func (k *kind) throttle(ctx context.Context, o outgoing) error {
	if k.limiter == nil {
		return nil
	}
	began := time.Now()
	err := k.limiter.Wait(ctx)
	if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("client rate limiter: %w", err)
	}
	waited := time.Since(began)
	if waited > longWait {
		klog.FromContext(ctx).V(3).Info(
			"Waited before sending request", "delay", waited, "verb", http.MethodPost, "url", o.path)
	}
	metrics.RateLimiterLatency.Observe(ctx, http.MethodPost, k.template, waited)
	return err
}

// count counts one try.
func (k *kind) count(ctx context.Context, o outgoing, answer *http.Response, err error, again bool) {
	metrics.RequestSize.Observe(ctx, http.MethodPost, k.base.Host, float64(len(o.body)))
	code := "<error>"
	if err == nil {
		code = codeText(answer.StatusCode)
	}
	metrics.RequestResult.Increment(ctx, code, http.MethodPost, k.base.Host)
	if again {
		metrics.RequestRetry.IncrementRetry(ctx, code, http.MethodPost, k.base.Host)
	}
}

func codeText(code int) string {
	if code == http.StatusCreated {
		return "201"
	}
	return strconv.Itoa(code)
}

// retryAfter reports whether an answer asks for the same write later, and when.
func retryAfter(answer *http.Response) (wait time.Duration, later bool) {
	if answer.StatusCode != http.StatusTooManyRequests && answer.StatusCode < http.StatusInternalServerError {
		return 0, false
	}
	seconds, later := retryAfterSeconds(answer)
	return time.Duration(min(max(seconds, 0), longestRetryAfter)) * time.Second, later
}

// retryAfterSeconds is the header Retry-After as a number of seconds; there may be none.
func retryAfterSeconds(answer *http.Response) (seconds int, has bool) {
	text := answer.Header.Get("Retry-After")
	if text == "" {
		return 0, false
	}
	seconds, err := strconv.Atoi(text)
	return seconds, err == nil
}

// resolverTrace returns a trace that measures the resolution of names, which happens when a connection is opened.
func resolverTrace() *httptrace.ClientTrace {
	var mu sync.Mutex
	var host string
	var began time.Time
	return &httptrace.ClientTrace{
		DNSStart: func(info httptrace.DNSStartInfo) {
			mu.Lock()
			defer mu.Unlock()
			host, began = info.Host, time.Now()
		},
		DNSDone: func(httptrace.DNSDoneInfo) {
			mu.Lock()
			defer mu.Unlock()
			metrics.ResolverLatency.Observe(context.Background(), host, time.Since(began))
		},
	}
}
