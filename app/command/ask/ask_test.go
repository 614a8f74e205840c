// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kumiki-scheduler/kumiki/kube"
	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/view"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"),
		// it waits some seconds for the streams of a closed connection
		goleak.IgnoreTopFunction("github.com/moby/spdystream.(*Connection).shutdown"))
}

// engineOf knows one pod.
type engineOf struct{ name string }

func (e engineOf) ExplainPod(namespace, name string) (record.PodReport, bool) {
	return record.PodReport{Pod: record.PodRef{Namespace: namespace, Name: name}}, name == e.name
}
func (engineOf) ExplainNode(string) (record.NodeReport, bool) { return record.NodeReport{}, false }
func (engineOf) ExplainGang(string, string) (record.GangReport, bool) {
	return record.GangReport{}, false
}
func (e engineOf) WhatIfPod(namespace, name string, conditions []string) (record.WhatIf, error) {
	switch {
	case name != e.name:
		return record.WhatIf{}, &record.Refusal{About: true, Message: "no such pod"}
	case conditions[0] == "drain n,1&":
		return record.WhatIf{}, &record.Refusal{Missing: true, Message: "there is no node n,1&"}
	case conditions[0] == "panic":
		return record.WhatIf{}, errors.New("it panicked")
	}
	return record.WhatIf{Priority: 7}, nil
}
func (engineOf) OtherNamespace(namespace string, conditions []string) string {
	for _, c := range conditions {
		if other, is := strings.CutPrefix(c, "of "); is && other != namespace {
			return other
		}
	}
	return ""
}
func (e engineOf) WhatIfGang(string, string, []string) (record.WhatIf, error) {
	return record.WhatIf{}, &record.Refusal{Message: "cannot be read"}
}
func (engineOf) GangList() record.GangList {
	return record.GangList{Counts: record.GangCounts{Gangs: 3}}
}
func (engineOf) QueueReport() record.QueueReport {
	return record.QueueReport{Counts: record.QueueCounts{Gated: 7}}
}

// world is an API server with one lease, and a scheduler that lets only a bearer of the token in. cluster_test.go has
// the API server's handler.
type world struct {
	view      *view.View
	scheduler *httptest.Server
	lease     *coordinationv1.Lease
	more      []*coordinationv1.Lease
	pods      []*v1.Pod
	denied    []string // verb resource, or verb resource/name, that the API server forbids
	forward   http.Handler
	renews    bool // the lease is renewed each time that it is read
	cfg       *rest.Config
}

const token = "user-token"

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{view: view.New(view.Options{Asker: view.AskFunc(func(_ context.Context, f func(view.Explainer)) error {
		f(engineOf{"web"})
		return nil
	})})}
	handler := w.view.Handler()
	w.scheduler = httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("Authorization") {
		case "Bearer " + token:
			handler.ServeHTTP(rw, r)
		case "Bearer unauthorized":
			rw.WriteHeader(http.StatusForbidden)
			json.NewEncoder(rw).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status"},
				Message: `User "unauthorized" cannot get path`})
		default:
			rw.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(w.scheduler.Close)
	holder, seconds := "host_1", int32(15)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.scheduler.Certificate().Raw})
	w.lease = &coordinationv1.Lease{
		TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-scheduler", Annotations: map[string]string{
			kube.EndpointAnnotation: w.scheduler.Listener.Addr().String(),
			kube.CAAnnotation:       base64.StdEncoding.EncodeToString(ca),
		}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds,
			RenewTime: &metav1.MicroTime{Time: time.Now()}},
	}
	api := httptest.NewServer(http.HandlerFunc(w.serveAPI))
	t.Cleanup(api.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	w.cfg = &rest.Config{Host: api.URL, BearerToken: token,
		ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	return w
}

func (w *world) find(t *testing.T) (*Client, error) { return w.findIn(t, Default()) }

func (w *world) findIn(t *testing.T, where Where) (*Client, error) {
	t.Helper()
	found, err := Find(t.Context(), w.cfg, where, "")
	if err != nil {
		return nil, err
	}
	c, err := found[0].Connect(t.Context())
	if c != nil {
		t.Cleanup(c.Close)
	}
	return c, err
}

// TestFindAndAsk goes the whole way: lease, certificate, credentials, question.
func TestFindAndAsk(t *testing.T) {
	w := newWorld(t)
	c, err := w.find(t)
	if err != nil {
		t.Fatal(err)
	}
	report, err := c.Pod(context.Background(), "shop", "web")
	if err != nil || report.Pod.Key() != "shop/web" {
		t.Fatalf("pod: %+v, %v", report, err)
	}
	queue, err := c.Queue(context.Background(), "")
	if err != nil || queue.Counts.Gated != 7 {
		t.Fatalf("queue: %+v, %v", queue, err)
	}
	gangs, err := c.Gangs(context.Background(), "")
	if err != nil || gangs.Counts.Gangs != 3 {
		t.Fatalf("gangs: %+v, %v", gangs, err)
	}
	if _, err := c.Node(context.Background(), "n"); !errors.Is(err, ErrUnknown) {
		t.Errorf("unknown node: %v", err)
	}
}

// TestWhatIf: the conditions come through as they were written, and each way to have no answer has its own error.
func TestWhatIf(t *testing.T) {
	w := newWorld(t)
	c, err := w.find(t)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := c.WhatIf(t.Context(), false, "shop", "web", []string{"drain n1", "cordon n2"}); err != nil ||
		r.Priority != 7 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := c.WhatIf(t.Context(), false, "shop", "other", []string{"drain n1"}); !errors.Is(err, ErrUnknown) {
		t.Errorf("a pod that is not known: %v", err)
	}
	if _, err := c.WhatIf(t.Context(), false, "shop", "web", []string{"drain n,1&"}); err == nil ||
		err.Error() != "there is no node n,1&" {
		t.Errorf("a node that is not known: %v", err)
	}
	if _, err := c.WhatIf(t.Context(), true, "shop", "web", []string{"drian n1"}); err == nil ||
		err.Error() != "cannot be read" {
		t.Errorf("a condition that cannot be read: %v", err)
	}
	if _, err := c.WhatIf(t.Context(), false, "shop", "web", []string{"panic"}); err == nil ||
		!strings.Contains(err.Error(), "it panicked") {
		t.Errorf("a question that fails: %v", err)
	}
}

// TestForwardedPort: another address is dialled, and the certificate is still checked for the one in the lease.
func TestForwardedPort(t *testing.T) {
	w := newWorld(t)
	address := w.lease.Annotations[kube.EndpointAnnotation]
	w.lease.Annotations[kube.EndpointAnnotation] = "example.com:10259" // a name of httptest's certificate
	where := Default()
	where.Endpoint = address
	c, err := w.findIn(t, where)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Queue(context.Background(), ""); err != nil {
		t.Error(err)
	}
	w.lease.Annotations[kube.EndpointAnnotation] = "elsewhere.test:10259"
	if c, err = w.findIn(t, where); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Queue(context.Background(), ""); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a certificate for another name was taken: %v", err)
	}
}

// TestAClockThatIsAhead: on a machine whose clock is an hour ahead, or behind, a lease that is renewed is not taken for
// one that was left behind. Fault: the clock of this machine decides alone.
func TestAClockThatIsAhead(t *testing.T) {
	for _, off := range []time.Duration{-time.Hour, time.Hour} {
		w := newWorld(t)
		w.lease.Spec.RenewTime.Time, w.renews = time.Now().Add(off), true
		c, err := w.find(t)
		if err == nil {
			_, err = c.Queue(t.Context(), "")
		}
		if err != nil {
			t.Errorf("with a lease of %s from now: %v", off, err)
		}
	}
}

// TestWhyNot: every way in which the scheduler cannot be asked has its own sentence.
func TestWhyNot(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*world)
		want   string
	}{
		"no lease": {func(w *world) { w.lease = nil },
			"no scheduler runs: there is no lease of a kumiki in namespace kube-system"},
		"no holder": {func(w *world) { w.lease.Spec.HolderIdentity = nil }, "no process holds lease"},
		"upstream":  {func(w *world) { w.lease.Annotations = nil }, `is "host_1" and not kumiki`},
		"upstream after us": {func(w *world) { w.lease.Annotations[kube.HolderAnnotation] = "host_0" },
			`left there by "host_0"`},
		"left behind": {func(w *world) {
			w.lease.Spec.RenewTime.Time, *w.lease.Spec.LeaseDurationSeconds = time.Now().Add(-time.Hour), 3
		}, "has not renewed it for 1h0m"},
		"bad address": {func(w *world) { w.lease.Annotations[kube.EndpointAnnotation] = "nonsense" },
			"missing port"},
		"bad ca": {func(w *world) { w.lease.Annotations[kube.CAAnnotation] = "!" },
			"annotation kumiki.dev/ca"},
		"wrong ca":     {func(w *world) { w.lease.Annotations[kube.CAAnnotation] = "" }, "certificate"},
		"forbidden":    {func(w *world) { w.cfg.BearerToken = "unauthorized" }, "the ClusterRole kumiki-viewer"},
		"anonymous":    {func(w *world) { w.cfg.BearerToken = "" }, "does not accept your credentials"},
		"does not run": {func(w *world) { w.scheduler.Close() }, "does not answer"},
		"api down": {func(w *world) { w.cfg.Host = "http://127.0.0.1:1" },
			"the API server http://127.0.0.1:1 cannot be reached"},
		"bad client ca": {func(w *world) { w.lease.Annotations[kube.CAAnnotation] = "bm9wZQ==" },
			"the certificate in the lease cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tt.change(w)
			c, err := w.find(t)
			if err == nil {
				_, err = c.Queue(context.Background(), "")
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestMovesResume: a stream that is opened again goes on behind the last move.
func TestMovesResume(t *testing.T) {
	w := newWorld(t)
	c, err := w.find(t)
	if err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	var names []string
	take := func(line view.MoveLine) error {
		if line.Move == nil {
			// The stream stands, so these moves are new to it.
			if len(names) == 0 {
				for _, name := range []string{"a", "b"} {
					w.view.Moved(record.QueueMove{Pod: record.PodRef{Name: name}})
				}
			}
			return nil
		}
		names = append(names, line.Move.Pod.Name)
		return enough
	}
	epoch, since, err := c.Moves(context.Background(), "", "", 0, take)
	if !errors.Is(err, enough) || since != 1 {
		t.Fatalf("first: %v, since %d", err, since)
	}
	if _, since, err = c.Moves(context.Background(), "", epoch, since, take); !errors.Is(err, enough) || since != 2 {
		t.Fatalf("second: %v, since %d", err, since)
	}
	if got := strings.Join(names, ""); got != "ab" {
		t.Errorf("moves %q, want ab", got)
	}
}
