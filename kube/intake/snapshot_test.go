// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
)

// laggingServer is an API server with two ages of the truth: what a quorum knows, and what an old cache says to any
// client that asks with resourceVersion=0.
type laggingServer struct {
	// streams reports whether lists may be asked for as a watch (upstream: gate WatchList).
	streams   bool
	now, then []v1.Pod

	mu    sync.Mutex
	stale int // answers that came from the cache
	asked []string
}

// answer picks the age of the truth for a resource version.
func (s *laggingServer) answer(version string) (pods []v1.Pod, revision string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version == "0" {
		s.stale++
		return s.then, "10"
	}
	return s.now, "20"
}

func (s *laggingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	query, pods := r.URL.Query(), r.URL.Path == "/api/v1/pods"
	s.mu.Lock()
	s.asked = append(s.asked, r.URL.String())
	s.mu.Unlock()
	switch {
	case query.Get("watch") == "":
		items, revision := s.answer(query.Get("resourceVersion"))
		if meta := (metav1.ListMeta{ResourceVersion: revision}); pods {
			json.NewEncoder(w).Encode(v1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: meta, Items: items})
		} else {
			json.NewEncoder(w).Encode(v1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, ListMeta: meta})
		}
		return
	case query.Get("sendInitialEvents") == "true" && !s.streams:
		refusal := apierrors.NewInvalid(v1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", nil).ErrStatus
		refusal.APIVersion, refusal.Kind = "v1", "Status"
		w.WriteHeader(http.StatusUnprocessableEntity)
		json.NewEncoder(w).Encode(refusal)
		return
	case query.Get("sendInitialEvents") == "true":
		items, revision := s.answer(query.Get("resourceVersion"))
		event := func(kind string, object any) {
			raw, _ := json.Marshal(object)
			json.NewEncoder(w).Encode(metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: raw}})
		}
		for i := range items {
			if pods {
				event("ADDED", &items[i])
			}
		}
		end := metav1.ObjectMeta{ResourceVersion: revision, Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}
		if pods {
			event("BOOKMARK", &v1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: end})
		} else {
			event("BOOKMARK", &v1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: end})
		}
	}
	http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// TestListsAreNotOlderThanTheQuestion: an API server with an old cache has the last bind of the scheduler before us
// only where a quorum is asked. It would fail with reflectors whose first list is of resourceVersion=0, as client-go's
// is where lists cannot be streamed.
func TestListsAreNotOlderThanTheQuestion(t *testing.T) {
	for name, streams := range map[string]bool{"streamed": true, "listed": false} {
		t.Run(name, func(t *testing.T) {
			pod := func(node string) v1.Pod {
				p := *kubetest.BoundPod("p", "u1", node)
				p.TypeMeta, p.ResourceVersion = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, "5"
				return p
			}
			lagging := &laggingServer{streams: streams, now: []v1.Pod{pod("n1")}, then: []v1.Pod{pod("")}}
			server := httptest.NewServer(lagging)
			defer server.Close()
			defer server.CloseClientConnections()
			client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			in := NewInbox(func(object string, problem any) { t.Errorf("%s: %v", object, problem) })
			events, err := Snapshot(t.Context(), client, nil, in)
			if err != nil {
				t.Fatal(err)
			}
			set, is := events[0].(engine.PodSet)
			if !is || set.Pod.NodeName != "n1" {
				t.Errorf("took %+v, want the pod on n1; asked %q", events[0], lagging.asked)
			}
			if lagging.stale > 0 {
				t.Errorf("%d answers came from an old cache; asked %q", lagging.stale, lagging.asked)
			}
		})
	}
}
