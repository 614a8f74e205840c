// SPDX-License-Identifier: Apache-2.0

package standin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// routes are the paths that are served; all else is not found.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/{resource}", s.read)
	mux.HandleFunc("GET /apis/{group}/{version}/{resource}", s.read)
	mux.HandleFunc("GET /api/v1/namespaces/{namespace}/{resource}", s.readNone)
	mux.HandleFunc("GET /api/v1/namespaces/{namespace}/pods/{name}", s.getPod)
	mux.HandleFunc("PATCH /api/v1/namespaces/{namespace}/pods/{name}/status", s.patchPod)
	mux.HandleFunc("POST /api/v1/namespaces/{namespace}/pods/{name}/binding", s.bind)
	mux.HandleFunc("GET /apis/events.k8s.io/v1", discoverEvents)
	mux.HandleFunc("POST /apis/events.k8s.io/v1/namespaces/{namespace}/events", s.event)
	mux.HandleFunc("POST /apis/authorization.k8s.io/v1/subjectaccessreviews", allow)
	mux.HandleFunc("/", func(out http.ResponseWriter, in *http.Request) {
		fail(out, apierrors.NewNotFound(schema.GroupResource{}, in.URL.Path))
	})
	return http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		setHeaders(out.Header(), in.Header)
		mux.ServeHTTP(out, in)
	})
}

// read lists the objects of a resource, or watches them.
func (s *Server) read(out http.ResponseWriter, in *http.Request) { s.readFrom(s.tables, out, in) }

// readNone does so for namespaced kinds without objects.
func (s *Server) readNone(out http.ResponseWriter, in *http.Request) {
	none := map[string]*table{}
	if kind, known := kinds[in.PathValue("resource")]; known {
		none[in.PathValue("resource")] = newTable(kind)
	}
	s.readFrom(none, out, in)
}

func (s *Server) readFrom(tables map[string]*table, out http.ResponseWriter, in *http.Request) {
	resource := in.PathValue("resource")
	t := tables[resource]
	if t == nil || t.kind.Group != in.PathValue("group") || strings.Contains(in.Header.Get("Accept"), "as=") {
		fail(out, apierrors.NewNotFound(schema.GroupResource{Group: in.PathValue("group"), Resource: resource}, ""))
		return
	}
	q := in.URL.Query()
	if q.Get("watch") != "true" && q.Get("watch") != "1" {
		t.list(out, wantsJSON(in))
		return
	}
	t.watch(in.Context(), out, wantsJSON(in), q.Get("sendInitialEvents") == "true")
}

func key(in *http.Request) string { return in.PathValue("namespace") + "/" + in.PathValue("name") }

func noPod(in *http.Request) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, in.PathValue("name"))
}

func (s *Server) getPod(out http.ResponseWriter, in *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.pending[key(in)]; p != nil {
		answer(out, in, http.StatusOK, p.pod)
		return
	}
	fail(out, noPod(in))
}

// bind binds a pod, to any node: as an API server, it does not look at the node.
func (s *Server) bind(out http.ResponseWriter, in *http.Request) {
	var b corev1.Binding
	if err := decode(in, &b); err != nil {
		fail(out, apierrors.NewBadRequest(err.Error()))
		return
	}
	if err := s.bindPod(key(in), &b); err != nil {
		fail(out, err)
		return
	}
	succeed(out, in)
}

func (s *Server) bindPod(key string, b *corev1.Binding) error {
	pods := schema.GroupResource{Resource: "pods"}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.pending[key]
	switch {
	case w == nil:
		s.counts.Refused++
		return apierrors.NewNotFound(pods, key)
	case b.UID != w.pod.UID || w.pod.Spec.NodeName != "":
		s.counts.Refused++
		return apierrors.NewConflict(pods, w.pod.Name,
			fmt.Errorf("it is another pod, or bound to %q", w.pod.Spec.NodeName))
	}
	w.bound = now
	w.pod.Spec.NodeName = b.Target.Name
	w.pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(now)}}
	s.counts.Binds++
	s.putPod(key, w.pod)
	return nil
}

// patchPod applies a patch to a pod's status.
func (s *Server) patchPod(out http.ResponseWriter, in *http.Request) {
	patch, err := bodyOf(in, nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.Patches++
	w := s.pending[key(in)]
	if w == nil || err != nil {
		fail(out, noPod(in))
		return
	}
	next, err := patched(w.pod, patch)
	if err != nil {
		fail(out, apierrors.NewBadRequest(err.Error()))
		return
	}
	w.pod = next
	s.putPod(key(in), next)
	answer(out, in, http.StatusOK, next)
}

func patched(p *corev1.Pod, patch []byte) (*corev1.Pod, error) {
	was, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	is, err := strategicpatch.StrategicMergePatch(was, patch, &corev1.Pod{})
	if err != nil {
		return nil, err
	}
	next := &corev1.Pod{}
	if err := json.Unmarshal(is, next); err != nil {
		return nil, err
	}
	next.ResourceVersion = p.ResourceVersion // no precondition
	return next, nil
}

// event counts a new event and answers with the sent object, which it reads as an API server would.
func (s *Server) event(out http.ResponseWriter, in *http.Request) {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	body, err := bodyOf(in, *buf)
	*buf = body[:0]
	var e eventsv1.Event
	if err == nil {
		err = decodeBytes(body, &e)
	}
	if err != nil {
		fail(out, apierrors.NewBadRequest(err.Error()))
		return
	}
	s.mu.Lock()
	s.counts.Events[e.Reason]++
	s.counts.LastEvent = time.Now()
	s.mu.Unlock()
	out.Header()["Content-Type"] = in.Header["Content-Type"]
	out.WriteHeader(http.StatusCreated)
	_, _ = out.Write(body) // who asked may be gone
}

// discoverEvents says that events have their own group: kube-scheduler asks before it writes the first one.
func discoverEvents(out http.ResponseWriter, _ *http.Request) {
	write(out, http.StatusOK, jsonType, must(json.Marshal(&metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: "events.k8s.io/v1",
		APIResources: []metav1.APIResource{{Name: "events", SingularName: "event", Kind: "Event", Namespaced: true,
			Verbs: metav1.Verbs{"create", "get", "list", "patch", "update", "watch"}}},
	})))
}

// allow authorizes every request to the scheduler.
func allow(out http.ResponseWriter, in *http.Request) {
	answer(out, in, http.StatusCreated, &authorizationv1.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"},
		Status:   authorizationv1.SubjectAccessReviewStatus{Allowed: true},
	})
}
