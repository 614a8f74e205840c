// SPDX-License-Identifier: Apache-2.0

package view

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/record"
)

// rights are what one identity may do: "verb namespace/name", with an empty name for all pods of the namespace.
func rights(list ...string) May {
	return func(_ context.Context, verb, namespace, name string) (bool, string, error) {
		if slices.Contains(list, "fail") {
			return false, "", errors.New("the API server is away")
		}
		all := verb + " " + namespace + "/"
		return slices.Contains(list, all) || name != "" && slices.Contains(list, all+name), "may not", nil
	}
}

// twoNamespaces is an engine with pods in default and shop.
type twoNamespaces struct{ engineOf }

func (twoNamespaces) ExplainPod(namespace, name string) (record.PodReport, bool) {
	pod := record.PodRef{Namespace: namespace, Name: name}
	return record.PodReport{Pod: pod, Preemption: &record.Preemption{Node: "n1", Victims: []record.Victim{
		{Pod: record.PodRef{Namespace: "shop", Name: "cart"}}, {Pod: record.PodRef{Namespace: "default", Name: "b"}},
	}}}, name != "gone"
}

func (twoNamespaces) QueueReport() record.QueueReport {
	entry := func(namespace, name string) record.QueueEntry {
		return record.QueueEntry{Pod: record.PodRef{Namespace: namespace, Name: name}}
	}
	return record.QueueReport{Counts: record.QueueCounts{Active: 2},
		Entries: []record.QueueEntry{entry("shop", "cart"), entry("default", "a")}}
}

func ask(v *View, path string, may May) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	v.Handler().ServeNarrow(w, httptest.NewRequest("GET", Prefix+path, nil), may)
	return w
}

// fast lets questions follow each other at once: an answer that took no time is followed by no pause.
func fast(v *View) *View {
	v.narrow.turn = make(chan struct{}, 1000)
	return v
}

// TestNarrowRights: each question needs its right in the namespace that it is about, and questions about nodes,
// decisions and all namespaces need the right to the path. Faults: a pod in another namespace; the gang with the right
// to one pod; the queue with get in place of list; a condition on another namespace.
func TestNarrowRights(t *testing.T) {
	v := fast(New(Options{Asker: asks(twoNamespaces{engineOf{"a", "n1"}})}))
	all := []string{"get default/", "list default/", "watch default/"}
	for _, tt := range []struct {
		path   string
		rights []string
		code   int
	}{
		{"why/pod/default/a", []string{"get default/"}, 200},
		{"why/pod/default/a", []string{"get default/a"}, 200},
		{"why/pod/default/a", []string{"get default/b", "list default/", "get shop/"}, 403},
		{"why/pod/shop/cart", all, 403},
		{"why/pod/default/gone", all, 404},
		{"why/pod/default/a", []string{"fail"}, 503},
		{"why/gang/ml/train", []string{"get ml/"}, 200},
		{"why/gang/ml/train", []string{"get ml/train", "get ml/train-0"}, 403},
		{"why/gang/ml/other", []string{"get ml/"}, 404},
		{"why/node/n1", all, 403},
		{"decisions", all, 403},
		{"decisions?pod=default/a", all, 403},
		{"shadow", all, 403},
		{"queue", all, 403},
		{"queue?namespace=default", []string{"list default/"}, 200},
		{"queue?namespace=default", []string{"get default/", "list shop/"}, 403},
		{"gangs", all, 403},
		{"gangs?namespace=default", []string{"list default/"}, 200},
		{"gangs?namespace=default", []string{"get default/", "list shop/"}, 403},
		{"queue/watch", all, 403},
		{"queue/watch?namespace=default", []string{"get default/", "list default/"}, 403},
		{"whatif/pod/default/a?if=drain+n1", []string{"get default/"}, 200},
		{"whatif/pod/default/a?if=drain+n1", []string{"get default/a"}, 403},
		{"whatif/pod/default/a?if=of+default", all, 200},
		{"whatif/pod/default/a?if=of+shop", all, 403},
		{"whatif/pod/default/a?if=missing", all, 422},
		{"whatif/pod/default/a?if=broken", all, 500},
	} {
		w := ask(v, tt.path, rights(tt.rights...))
		var s metav1.Status
		if w.Code != 200 && (json.Unmarshal(w.Body.Bytes(), &s) != nil || s.Message == "") {
			t.Errorf("%s: no reason in %s", tt.path, w.Body)
		}
		if w.Code != tt.code {
			t.Errorf("%s with %q: code %d, want %d: %s", tt.path, tt.rights, w.Code, tt.code, w.Body)
		}
	}
}

// TestNarrowAnswersAreRedacted. Faults: the queue, or the list of gangs, of a namespace lists all namespaces.
func TestNarrowAnswersAreRedacted(t *testing.T) {
	v := fast(New(Options{Asker: asks(twoNamespaces{engineOf{"a", "n1"}})}))
	var pod record.PodReport
	if err := json.Unmarshal(ask(v, "why/pod/default/a", rights("get default/")).Body.Bytes(), &pod); err != nil {
		t.Fatal(err)
	}
	if p := pod.Preemption; pod.Only != "default" || len(p.Victims) != 1 || p.Elsewhere == nil || p.Elsewhere.Victims != 1 {
		t.Errorf("pod: %+v, %+v", pod, pod.Preemption)
	}
	var queue record.QueueReport
	w := ask(v, "queue?namespace=default", rights("list default/"))
	if err := json.Unmarshal(w.Body.Bytes(), &queue); err != nil {
		t.Fatal(err)
	}
	if len(queue.Entries) != 1 || queue.Entries[0].Pod.Name != "a" || queue.Counts.Active != 2 {
		t.Errorf("queue: %+v", queue)
	}
	var gangs record.GangList
	w = ask(v, "gangs?namespace=default", rights("list default/"))
	if err := json.Unmarshal(w.Body.Bytes(), &gangs); err != nil {
		t.Fatal(err)
	}
	if len(gangs.Gangs) != 1 || gangs.Gangs[0].Name != "default/train" || gangs.Counts.Gangs != 2 ||
		gangs.Only != "default" {
		t.Errorf("gangs: %+v", gangs)
	}
}

// TestNarrowQuestionsAreBounded: one is answered at a time, some wait, and the next is refused.
func TestNarrowQuestionsAreBounded(t *testing.T) {
	hold, entered := make(chan struct{}), make(chan struct{}, narrowWaiting)
	var inside, most atomic.Int32
	v := New(Options{Asker: AskFunc(func(context.Context, func(Explainer)) error {
		most.Store(max(most.Load(), inside.Add(1)))
		entered <- struct{}{}
		<-hold
		inside.Add(-1)
		return errors.New("stopped")
	})})
	ctx, cancel := context.WithCancel(t.Context())
	codes := make(chan int, narrowWaiting)
	for range narrowWaiting {
		go func() {
			w := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(ctx, "GET", Prefix+"why/pod/default/a", nil)
			v.Handler().ServeNarrow(w, r, rights("get default/"))
			codes <- w.Code
		}()
	}
	<-entered
	for len(v.narrow.waiting) < narrowWaiting {
		time.Sleep(time.Millisecond)
	}
	if w := ask(v, "why/pod/default/a", rights("get default/")); w.Code != http.StatusTooManyRequests {
		t.Errorf("the question after %d: code %d", narrowWaiting, w.Code)
	}
	cancel() // those that wait go away
	close(hold)
	for range narrowWaiting {
		<-codes
	}
	if most.Load() != 1 {
		t.Errorf("%d questions were answered at once", most.Load())
	}
}

// TestNarrowStream: only moves of the namespace are sent, and the stream ends when the right has been taken away.
// Fault: a stream goes on without the right.
func TestNarrowStream(t *testing.T) {
	v := New(Options{})
	v.keepAlive = time.Millisecond
	var revoked atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v.Handler().ServeNarrow(w, r, func(ctx context.Context, verb, namespace, name string) (bool, string, error) {
			return verb == "watch" && namespace == "default" && !revoked.Load(), "may not", nil
		})
	}))
	t.Cleanup(server.Close)
	res, err := http.Get(server.URL + Prefix + "queue/watch?namespace=default")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close(); http.DefaultClient.CloseIdleConnections() })
	lines := bufio.NewScanner(res.Body)
	next := func() string { // the next line, or an empty string at the end
		for range 1000 { // an open stream has an empty line every millisecond
			if !lines.Scan() {
				return ""
			}
			if lines.Text() != "" {
				return lines.Text()
			}
		}
		return "the stream goes on"
	}
	next()
	other := move("cart")
	other.Pod.Namespace = "shop"
	v.Moved(other)
	v.Moved(move("a"))
	if line := next(); !strings.Contains(line, `"name":"a"`) || strings.Contains(line, "shop") {
		t.Errorf("first move: %s", line)
	}
	revoked.Store(true)
	if line := next(); line != "" {
		t.Errorf("after the right was taken away: %s", line)
	}
}
