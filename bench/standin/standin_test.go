// SPDX-License-Identifier: Apache-2.0

package standin

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// served is a stand-in with one node, two bound pods and one that waits, and a client that speaks protobuf.
func served(t *testing.T) (*Server, *kubernetes.Clientset) { return servedIn(t, protobuf) }

func servedIn(t *testing.T, contentType string) (*Server, *kubernetes.Clientset) {
	t.Helper()
	s, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	s.AddNamespace("ns")
	s.AddNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}})
	for _, p := range []struct{ name, node string }{{"a", "node"}, {"b", "node"}, {"waits", ""}} {
		s.AddPod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: p.name, UID: types.UID(p.name)}, Spec: corev1.PodSpec{NodeName: p.node}})
	}
	file, err := s.WriteKubeconfig(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	cfg.ContentType = contentType
	return s, kubernetes.NewForConfigOrDie(cfg)
}

// next is the next event of a watch.
func next(t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	select {
	case ev, open := <-w.ResultChan():
		if !open {
			t.Fatal("the watch ended")
		}
		return ev
	case <-time.After(30 * time.Second):
		t.Fatal("the watch says nothing")
	}
	panic("not reached")
}

// TestAListStreamsInAndIsFollowed: every pod there is, the mark of the end, and what happens to one.
func TestAListStreamsInAndIsFollowed(t *testing.T) {
	for _, contentType := range []string{protobuf, jsonType} {
		t.Run(contentType, func(t *testing.T) { follow(t, contentType) })
	}
}

func follow(t *testing.T, contentType string) {
	s, client := servedIn(t, contentType)
	yes := true
	pods := client.CoreV1().Pods("")
	w, err := pods.Watch(t.Context(), metav1.ListOptions{SendInitialEvents: &yes, AllowWatchBookmarks: true,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for _, name := range []string{"a", "b", "waits"} {
		ev := next(t, w)
		if p, ok := ev.Object.(*corev1.Pod); !ok || ev.Type != watch.Added || p.Name != name || p.ResourceVersion == "" {
			t.Fatalf("got %v %+v, want pod %s", ev.Type, ev.Object, name)
		}
	}
	end := next(t, w)
	if p, ok := end.Object.(*corev1.Pod); !ok || end.Type != watch.Bookmark || p.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
		t.Fatalf("the list ends with %v %+v", end.Type, end.Object)
	}

	bind := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "waits", UID: "waits"}, Target: corev1.ObjectReference{Name: "node"}}
	if err := client.CoreV1().Pods("ns").Bind(t.Context(), bind, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ev := next(t, w)
	if p, ok := ev.Object.(*corev1.Pod); !ok || ev.Type != watch.Modified || p.Name != "waits" || p.Spec.NodeName != "node" {
		t.Fatalf("the bind is sent as %v %+v", ev.Type, ev.Object)
	}
	if s.Bound("ns", "waits").IsZero() || s.Streamed("pods").IsZero() || s.Sent()["pods"].Events != 5 {
		t.Errorf("bound %v, sent %+v", s.Bound("ns", "waits"), s.Sent()["pods"])
	}
	if err := client.CoreV1().Pods("ns").Bind(t.Context(), bind, metav1.CreateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("a second bind: %v", err)
	}
	if c := s.Counts(); c.Binds != 1 || c.Refused != 1 {
		t.Errorf("counted %+v, want one bind and one that was refused", c)
	}
	if log := s.Log(); len(log) != 1 || log[0].Name != "ns/waits" || log[0].Node != "node" || log[0].Bound.Before(log[0].Added) {
		t.Errorf("the log is %+v", log)
	}
}

// TestAListInOnePiece has the same objects, and none of a kind of which there are none.
func TestAListInOnePiece(t *testing.T) {
	for _, contentType := range []string{protobuf, jsonType} {
		t.Run(contentType, func(t *testing.T) { listAll(t, contentType) })
	}
}

func listAll(t *testing.T, contentType string) {
	_, client := servedIn(t, contentType)
	pods, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) != 3 || pods.Items[2].Name != "waits" || pods.ResourceVersion != "3" {
		t.Errorf("%v, %+v", err, pods)
	}
	claims, err := client.ResourceV1().ResourceClaims("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(claims.Items) != 0 {
		t.Errorf("%v, %+v", err, claims)
	}
	if _, err := client.NetworkingV1().Ingresses("").List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a kind that is not served: %v", err)
	}
}

// TestWritesOfAScheduler are taken: the status of a pod, an event, a new version of a node.
func TestWritesOfAScheduler(t *testing.T) {
	s, client := served(t)
	nodes, err := client.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer nodes.Stop()
	patch := []byte(`{"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable"}]}}`)
	p, err := client.CoreV1().Pods("ns").Patch(t.Context(), "waits", types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil || len(p.Status.Conditions) != 1 || p.Status.Conditions[0].Reason != "Unschedulable" || p.ResourceVersion != "4" {
		t.Errorf("%v, %+v", err, p)
	}
	if got, err := client.CoreV1().Pods("ns").Get(context.Background(), "waits", metav1.GetOptions{}); err != nil || len(got.Status.Conditions) != 1 {
		t.Errorf("read back: %v, %+v", err, got)
	}
	ev, err := client.EventsV1().Events("ns").Create(t.Context(), &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e"}, Reason: "Scheduled"}, metav1.CreateOptions{})
	if err != nil || ev.Reason != "Scheduled" {
		t.Errorf("%v, %+v", err, ev)
	}
	if c := s.Counts(); c.Events["Scheduled"] != 1 || c.LastEvent.IsZero() || c.Patches != 1 {
		t.Errorf("counted %+v, want one event and one patch", c)
	}
	s.ChangeNode(0, func(n *corev1.Node) { n.Labels = map[string]string{"a": "b"} })
	if ev := next(t, nodes); ev.Type != watch.Modified || ev.Object.(*corev1.Node).Labels["a"] != "b" {
		t.Errorf("the node is told as %+v", ev)
	}
}
