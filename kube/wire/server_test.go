// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// sent is a request as a server gets it.
type sent struct {
	Proto, Method, URI string
	Header             http.Header
	Body               string
}

// server is an API server whose answers a test gives, over TLS and HTTP/2.
type server struct {
	*httptest.Server
	mu  sync.Mutex
	got []sent
}

func serve(t *testing.T, answer http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("reading the body of %s: %v", r.RequestURI, err)
		}
		s.mu.Lock()
		s.got = append(s.got, sent{r.Proto, r.Method, r.RequestURI, r.Header, string(body)})
		s.mu.Unlock()
		answer(w, r)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// taken returns what the server got, and forgets it.
func (s *server) taken() []sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := s.got
	s.got = nil
	return got
}

// config is the configuration of a client of the server.
func (s *server) config() *rest.Config {
	return &rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, QPS: -1, DisableCompression: true,
		UserAgent: "kumiki/test", ContentConfig: rest.ContentConfig{ContentType: protobuf,
			AcceptContentTypes: protobuf + ",application/json"}}
}

// ways are both ways to send through one client of a configuration.
func ways(t testing.TB, cfg *rest.Config) map[string]Writes {
	t.Helper()
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	set, err := kubernetes.NewForConfigAndClient(cfg, client)
	if err != nil {
		t.Fatal(err)
	}
	prepared, err := NewPrepared(cfg, client, set)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]Writes{"typed": Typed(set), "prepared": prepared}
}

func binding() *v1.Binding {
	return &v1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u1",
		Annotations: map[string]string{"b": "2", "a": "1"}}, Target: v1.ObjectReference{Kind: "Node", Name: "node-1"}}
}

func event() *eventsv1.Event {
	return &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p.17"},
		EventTime: metav1.NewMicroTime(metav1.Unix(7, 9000).Time), ReportingController: "kumiki", Reason: "Scheduled",
		Regarding: v1.ObjectReference{Kind: "Pod", Namespace: "ns", Name: "p", UID: types.UID("u1")}, Note: "bound", Type: "Normal"}
}

// send sends a bind and an event.
func send(t *testing.T, w Writes) [2]error {
	t.Helper()
	return [2]error{w.Bind(t.Context(), binding()), w.CreateEvent(t.Context(), event())}
}

// created answers as an API server does to a write that it has carried out.
func created(w http.ResponseWriter, r *http.Request) {
	status, kind := any(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess}), "binding"
	if r.URL.Path[:6] == "/apis/" {
		e := event()
		e.TypeMeta = metav1.TypeMeta{Kind: "Event", APIVersion: "events.k8s.io/v1"}
		status, kind = e, "events"
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Kind", kind)
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(status)
}

// alike fails a test if two errors do not mean the same to a caller.
func alike(t *testing.T, typed, prepared error) {
	t.Helper()
	if (typed == nil) != (prepared == nil) {
		t.Fatalf("typed %v, prepared %v", typed, prepared)
	}
	a, isA := typed.(apierrors.APIStatus)
	b, isB := prepared.(apierrors.APIStatus)
	if isA != isB {
		t.Fatalf("typed %T %v, prepared %T %v", typed, typed, prepared, prepared)
	}
	if isA && !reflect.DeepEqual(a.Status(), b.Status()) {
		t.Errorf("typed\n%+v, prepared\n%+v", a.Status(), b.Status())
	}
}
