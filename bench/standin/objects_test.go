// SPDX-License-Identifier: Apache-2.0

package standin

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// TestProblems finds what a scheduler may not leave behind: some of these pods break a rule each. Fault:
// overcommitUnseen.
func TestProblems(t *testing.T) {
	s, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	small := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourcePods: resource.MustParse("2")}
	for _, name := range []string{"a", "b", "c"} {
		s.AddNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Allocatable: small}})
	}
	s.AddPod(podOf("before", "a", "600m"))
	for _, p := range []struct{ name, node, cpu string }{
		{"too-large", "a", "500m"},                                // 1,100m of 1,000m
		{"one", "b", "0"}, {"two", "b", "0"}, {"three", "b", "0"}, // 3 of 2 pods
		{"fits", "c", "1"}, {"lost", "no-node", "1"}, {"twice", "c", "0"}, {"waits", "", "0"},
	} {
		s.AddPod(podOf(p.name, "", p.cpu))
		if p.node == "" {
			continue
		}
		if err := s.bindPod("ns/"+p.name, bindingOf(p.name, p.node)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.bindPod("ns/twice", bindingOf("twice", "a")); err == nil {
		t.Error("a pod is bound twice")
	}
	want := []string{
		"1 of 8 pods are not bound",
		"1 binds were refused: of pods that were bound before, or are unknown",
		"node a is overcommitted: cpu (milli) 1100 of 1000",
		"node b is overcommitted: pods 3 of 2",
		`1 pods are bound to "no-node", which is not a node`,
	}
	if got := s.Problems(); !slices.Equal(got, want) {
		t.Errorf("found %q\nwant  %q", got, want)
	}
}

func podOf(name, node, cpu string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}}}
}

func bindingOf(name, node string) *corev1.Binding {
	return &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
		Target: corev1.ObjectReference{Kind: "Node", Name: node}}
}

// TestABodyOfAnotherKindIsRejected, as an API server does. Fault: anyKind.
func TestABodyOfAnotherKindIsRejected(t *testing.T) {
	event := envelopeOf(t, "events.k8s.io/v1", "Event", &eventsv1.Event{})
	if err := decodeBytes(event, &corev1.Binding{}); err == nil {
		t.Error("an event was read as a binding")
	}
	if err := decodeBytes(event, &eventsv1.Event{}); err != nil {
		t.Error(err)
	}
}

func envelopeOf(t testing.TB, version, kind string, obj marshaler) []byte {
	t.Helper()
	of := schema.FromAPIVersionAndKind(version, kind)
	return newForm(of).appendEnvelope(nil, must(obj.Marshal()))
}

// BenchmarkPod is the stand-in's own part of a pod: its creation, its bind and its event, with one watch. HTTP/2 and
// TLS come on top; `kumiki bench wire` measures the whole process.
func BenchmarkPod(b *testing.B) {
	s, err := Start()
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	w := &watcher{news: make(chan struct{}, 1)}
	s.tables["pods"].watchers[w] = true
	handler := s.routes()
	event := envelopeOf(b, "events.k8s.io/v1", "Event", &eventsv1.Event{Reason: "Scheduled",
		Regarding: corev1.ObjectReference{Kind: "Pod", Namespace: "ns", Name: "pod"},
		Note:      "Successfully assigned ns/pod to node"})
	post := func(path string, body []byte) {
		in := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
		in.Header.Set("Accept", protobuf)
		in.Header.Set("Content-Type", protobuf)
		out := httptest.NewRecorder()
		if handler.ServeHTTP(out, in); out.Code != http.StatusCreated {
			b.Fatal(out.Code, out.Body)
		}
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		name := fmt.Sprintf("pod-%09d", i)
		i++
		s.AddPod(podOf(name, "", "100m"))
		bind := envelopeOf(b, "v1", "Binding", bindingOf(name, "node"))
		post("/api/v1/namespaces/ns/pods/"+name+"/binding", bind)
		post("/apis/events.k8s.io/v1/namespaces/ns/events", event)
		w.waiting = w.waiting[:0]
	}
}
