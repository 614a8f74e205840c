// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/kumiki-scheduler/kumiki/apm"
	"github.com/kumiki-scheduler/kumiki/apm/bundle"
	"github.com/kumiki-scheduler/kumiki/apm/pods"
)

// podEvent is an event of a watch: a pod, and its node.
func podEvent(kind watch.EventType, name, node string) watch.Event {
	return watch.Event{Type: kind, Object: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name,
		UID: types.UID(name)}, Spec: v1.PodSpec{NodeName: node}}}
}

// TestPodsAreTimedFromCreationToBind: pods that are older than the recording have no time of creation, so they are left
// out; a pod that is bound at its creation took no time; later changes do not move the bind.
func TestPodsAreTimedFromCreationToBind(t *testing.T) {
	w := &podWatch{times: pods.Times{Created: pods.FromWatch}, at: map[types.UID]int{}, stop: func() {}}
	for i, e := range []watch.Event{podEvent(watch.Added, "web", ""), podEvent(watch.Modified, "old", "n1"),
		podEvent(watch.Modified, "web", "n1"), podEvent(watch.Added, "late", ""), podEvent(watch.Added, "pinned", "n2"),
		podEvent(watch.Modified, "web", "n1"), {Type: watch.Bookmark, Object: &v1.Node{}}} {
		if !w.see(e, true, time.Unix(0, int64(100+i))) {
			t.Fatalf("event %d ends the watch", i)
		}
	}
	want := []pods.Pod{{Namespace: "shop", Name: "web", Created: 100, Bound: 102},
		{Namespace: "shop", Name: "late", Created: 103}, {Namespace: "shop", Name: "pinned", Created: 104, Bound: 104}}
	if got := w.times.Pods; len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("pods %+v, want %+v", got, want)
	}
	gone := watch.Event{Type: watch.Error, Object: &metav1.Status{Message: "too old"}}
	if w.see(gone, true, time.Now()) {
		t.Error("an error does not end the watch")
	}
	b := written(t, w)
	if p, _ := b.Part(bundle.Pods); !strings.Contains(p.Missing, "broke off: too old") {
		t.Errorf("after a watch that broke off, the part is %+v", p)
	}
}

// written is a bundle with what a watch saw.
func written(t *testing.T, w *podWatch) *bundle.Reader {
	t.Helper()
	var out bytes.Buffer
	b := bundle.NewWriter(&out)
	if err := w.addTo(b); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := bundle.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()), bundle.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestPodsOfAnAPIServer: the watch begins at the revision of the list. A user who may not watch gets the reason.
func TestPodsOfAnAPIServer(t *testing.T) {
	streaming := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		q := r.URL.Query()
		switch {
		case strings.HasPrefix(r.Header.Get("Authorization"), "Bearer reader") && q.Get("watch") != "":
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden",` +
				`"code":403,"message":"pods is forbidden: cannot watch"}`))
		case q.Get("watch") == "":
			_, _ = w.Write([]byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}`))
		case q.Get("resourceVersion") != "7":
			t.Errorf("the watch begins at %q", q.Get("resourceVersion"))
		default:
			pod := podEvent(watch.Added, "web", "n1").Object.(*v1.Pod)
			pod.TypeMeta, pod.ResourceVersion = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, "8"
			_ = json.NewEncoder(w).Encode(map[string]any{"type": "ADDED", "object": pod})
			w.(http.Flusher).Flush()
			if q.Get("allowWatchBookmarks") != "" {
				close(streaming)
			}
			<-r.Context().Done()
		}
	}))
	t.Cleanup(server.Close)
	cfg := &rest.Config{Host: server.URL, BearerToken: "admin"}
	w := watchPods(t.Context(), cfg)
	<-streaming
	for seen := false; !seen; time.Sleep(time.Millisecond) {
		w.mu.Lock()
		seen = len(w.times.Pods) == 1
		w.mu.Unlock()
	}
	times, err := apm.ReadPods(written(t, w))
	if err != nil || len(times.Pods) != 1 || times.Pods[0].Bound == 0 || times.Created != pods.FromWatch {
		t.Errorf("%+v, %v", times, err)
	}
	cfg.BearerToken = "reader"
	denied := watchPods(t.Context(), cfg)
	if p, _ := written(t, denied).Part(bundle.Pods); !strings.Contains(p.Missing, "cannot watch") {
		t.Errorf("for a user who may not watch, the part is %+v", p)
	}
}
