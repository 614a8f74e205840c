// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

const (
	asJSON  = "application/json"
	asProto = "application/vnd.kubernetes.protobuf"
)

// apiServer is as much of an API server as the tests need: it takes bindings and tells of events.
type apiServer struct {
	*httptest.Server
	mu     sync.Mutex
	bound  []string // pods in the order of their bindings
	agents []string // Authorization of each request
	events chan metav1.WatchEvent

	// There is one watch, the newest: one whose client has gone without the server's knowing would take its events.
	endWatch context.CancelFunc
	ended    chan struct{} // closed when the watch has ended
}

func newServer(t *testing.T) *apiServer {
	s := &apiServer{events: make(chan metav1.WatchEvent, 100)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/namespaces/{space}/pods/{name}/binding", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.bound = append(s.bound, r.PathValue("name"))
		s.agents = append(s.agents, r.Header.Get("Authorization"))
		answer(w, http.StatusCreated, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess})
	})
	mux.HandleFunc("GET /api/v1/pods", s.watch)
	s.Server = httptest.NewUnstartedServer(mux)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func answer(w http.ResponseWriter, code int, said any) {
	w.Header().Set("Content-Type", asJSON)
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(said)
}

// takeOver ends the watch before and makes this one the newest, until over is called.
func (s *apiServer) takeOver(ctx context.Context) (watching context.Context, over func()) {
	watching, end := context.WithCancel(ctx)
	ended := make(chan struct{})
	s.mu.Lock()
	endBefore, before := s.endWatch, s.ended
	s.endWatch, s.ended = end, ended
	s.mu.Unlock()
	if endBefore != nil {
		endBefore()
		<-before
	}
	return watching, func() {
		end()
		close(ended)
	}
}

func (s *apiServer) watch(w http.ResponseWriter, r *http.Request) {
	ctx, over := s.takeOver(r.Context())
	defer over()
	media := asJSON
	if strings.Contains(r.Header.Get("Accept"), asProto) {
		media = asProto
	}
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), media)
	if !ok {
		panic("no serializer for " + media)
	}
	w.Header().Set("Content-Type", media)
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	out := streaming.NewEncoder(info.StreamSerializer.NewFrameWriter(w), scheme.Codecs.EncoderForVersion(info.StreamSerializer.Serializer, v1.SchemeGroupVersion))
	inner := scheme.Codecs.EncoderForVersion(info.Serializer, v1.SchemeGroupVersion)
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-s.events:
			if e.Type == "" {
				return
			}
			raw, err := runtime.Encode(inner, e.Object.Object)
			if err != nil {
				panic(err)
			}
			if err := out.Encode(&metav1.WatchEvent{Type: e.Type, Object: runtime.RawExtension{Raw: raw}}); err != nil {
				return
			}
			w.(http.Flusher).Flush()
		}
	}
}

// tell sends events in short form: +a is a new pod, ~a a change of it, -a its end, = a bookmark, and . ends the watch.
func (s *apiServer) tell(short ...string) {
	kinds := map[byte]string{'+': "ADDED", '~': "MODIFIED", '-': "DELETED", '=': "BOOKMARK"}
	for _, e := range short {
		pod := &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: e[1:], UID: types.UID(e[1:]), ResourceVersion: "7"},
			// Fields behind the metadata, which the reader of events must pass over.
			Spec:   v1.PodSpec{NodeName: "node-of-" + e[1:]},
			Status: v1.PodStatus{Phase: v1.PodRunning},
		}
		s.events <- metav1.WatchEvent{Type: kinds[e[0]], Object: runtime.RawExtension{Object: pod}}
	}
}

func (s *apiServer) applied() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.bound)
}

// direct is a client's configuration without anything between.
func (s *apiServer) direct() *rest.Config {
	return &rest.Config{Host: s.URL, BearerToken: "the-scheduler", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
}

func client(t *testing.T, cfg *rest.Config) *kubernetes.Clientset {
	t.Helper()
	set, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// eventually waits until is reports true; the test's own deadline ends it.
func eventually(t *testing.T, is func() bool) {
	t.Helper()
	for !is() {
		select {
		case <-t.Context().Done():
			t.Fatal("it never came")
		case <-time.After(time.Millisecond):
		}
	}
}

// listen reads a watch and gives its events in short form; one that cannot be read is "!". The channel closes with
// the watch.
func listen(t *testing.T, c *kubernetes.Clientset) <-chan string {
	t.Helper()
	w, err := c.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{AllowWatchBookmarks: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	kinds := map[string]string{"ADDED": "+", "MODIFIED": "~", "DELETED": "-", "BOOKMARK": "="}
	heard := make(chan string, 100)
	go func() {
		defer close(heard)
		for e := range w.ResultChan() {
			switch o := e.Object.(type) {
			case *v1.Pod:
				if o.Spec.NodeName != "node-of-"+o.Name {
					heard <- fmt.Sprintf("pod %s came with node %q", o.Name, o.Spec.NodeName)
				}
				heard <- kinds[string(e.Type)] + o.Name
			case *metav1.Status:
				heard <- fmt.Sprint("!", o.Code)
			}
		}
	}()
	return heard
}

func expect(t *testing.T, heard <-chan string, want ...string) {
	t.Helper()
	for _, w := range want {
		select {
		case got, open := <-heard:
			if !open {
				got = "end"
			}
			if got != w {
				t.Fatalf("heard %q, want %q of %v", got, w, want)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("heard nothing, want %q of %v", w, want)
		}
	}
}
