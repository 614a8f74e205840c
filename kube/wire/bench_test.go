// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kumiki-scheduler/kumiki/kube/call"
	"github.com/kumiki-scheduler/kumiki/timing"
)

// serverOf is the variable that makes this program the API server of a benchmark.
const serverOf = "KUMIKI_WIRE_BENCH_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(serverOf) != "" {
		beServer()
		return
	}
	os.Exit(m.Run())
}

// beServer answers writes from memory, with the headers of an API server, until standard input ends.
func beServer() {
	status := []byte("k8s\x00\n\x0c\n\x02v1\x12\x06Status\x12\x17\n\x06\n\x00\x12\x00\x1a\x00\x12\x07Success\x1a\x00\x22\x000\xc9\x01\x1a\x00\x22\x00")
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		h := w.Header()
		h.Set("Audit-Id", r.Header.Get("Audit-Id"))
		h.Set("Cache-Control", "no-cache, private")
		h.Set("Content-Type", protobuf)
		h.Set("X-Kubernetes-Pf-Flowschema-Uid", "5c3f5c0e-6c26-4f8e-9d1b-8e0f1a2b3c4d")
		h.Set("X-Kubernetes-Pf-Prioritylevel-Uid", "0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d")
		w.WriteHeader(http.StatusCreated)
		if strings.HasSuffix(r.URL.Path, "/binding") {
			body = status
		}
		_, _ = w.Write(body)
	}))
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{}
	s.StartTLS()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	fmt.Printf("%s\n%s\n.\n", s.URL, ca)
	_, _ = io.Copy(io.Discard, os.Stdin)
	s.Close()
}

// startServer starts the API server of a benchmark in a process of its own, and returns how to reach it.
func startServer(b *testing.B) *rest.Config {
	b.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), serverOf+"=1")
	in, err := c.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		_ = c.Wait()
	})
	var said strings.Builder
	for one := make([]byte, 1); !strings.HasSuffix(said.String(), "\n.\n"); said.Write(one) {
		if _, err := out.Read(one); err != nil {
			b.Fatal(err)
		}
	}
	url, ca, _ := strings.Cut(said.String(), "\n")
	ca = strings.TrimSuffix(ca, ".\n")
	return &rest.Config{Host: url, TLSClientConfig: rest.TLSClientConfig{CAData: []byte(ca)}, QPS: -1, DisableCompression: true,
		UserAgent: "kumiki/bench scheduler", ContentConfig: rest.ContentConfig{ContentType: protobuf,
			AcceptContentTypes: protobuf + ",application/json"}}
}

// used is the CPU time that this process has used.
func used(b *testing.B) (user, system time.Duration) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano())
}

// BenchmarkPod measures the CPU time of this process for the bind and the event of one pod, each as the scheduler sends
// it: recorded, observed, with a time limit, many at once. The API server is another process.
func BenchmarkPod(b *testing.B) {
	const atOnce = 32
	for _, way := range []string{"typed", "prepared"} {
		b.Run(way, func(b *testing.B) {
			cfg := startServer(b)
			clock, recorder := call.NewClock(), timing.New(timing.Options{})
			cfg.Wrap(call.Recorded(clock, recorder.Requested))
			cfg.Wrap(call.NewAnswers(clock).Observed)
			w := ways(b, cfg)[way]
			one := func() {
				ctx, cancel := contextOf(b)
				defer cancel()
				if err := w.Bind(ctx, binding()); err != nil {
					b.Error(err)
				}
				ctx, cancelEvent := contextOf(b)
				defer cancelEvent()
				if err := w.CreateEvent(ctx, event()); err != nil {
					b.Error(err)
				}
			}
			one() // opens the connection
			runtime.GC()
			user, system := used(b)
			b.ReportAllocs()
			b.ResetTimer()
			var left atomic.Int64
			left.Store(int64(b.N))
			var workers sync.WaitGroup
			for range atOnce {
				workers.Go(func() {
					for left.Add(-1) >= 0 {
						one()
					}
				})
			}
			workers.Wait()
			b.StopTimer()
			endUser, endSystem := used(b)
			each := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(b.N) }
			b.ReportMetric(each(endUser-user), "user-µs/pod")
			b.ReportMetric(each(endSystem-system), "system-µs/pod")
			b.ReportMetric(each(endUser-user+endSystem-system), "cpu-µs/pod")
		})
	}
}

// contextOf is the context of one write, as the workers make it.
func contextOf(b *testing.B) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(b.Context(), call.Timeout)
	return call.WithTrace(ctx, nil), cancel
}
