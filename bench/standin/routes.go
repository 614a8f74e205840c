// SPDX-License-Identifier: Apache-2.0

package standin

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
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
	mux.HandleFunc("POST /apis/events.k8s.io/v1/namespaces/{namespace}/events", echo)
	mux.HandleFunc("POST /apis/authorization.k8s.io/v1/subjectaccessreviews", allow)
	mux.HandleFunc("/", func(out http.ResponseWriter, in *http.Request) {
		fail(out, apierrors.NewNotFound(schema.GroupResource{}, in.URL.Path))
	})
	return mux
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
		t.list(out)
		return
	}
	t.watch(in.Context(), out, q.Get("sendInitialEvents") == "true")
}

func key(in *http.Request) string { return in.PathValue("namespace") + "/" + in.PathValue("name") }

func noPod(in *http.Request) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, in.PathValue("name"))
}

func (s *Server) getPod(out http.ResponseWriter, in *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.pending[key(in)]; p != nil {
		answer(out, http.StatusOK, p)
		return
	}
	fail(out, noPod(in))
}

// bind binds a pod. Which node it is does not matter here.
func (s *Server) bind(out http.ResponseWriter, in *http.Request) {
	var b corev1.Binding
	if err := decode(in, &b); err != nil {
		fail(out, apierrors.NewBadRequest(err.Error()))
		return
	}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pending[key(in)]
	switch {
	case p == nil:
		fail(out, noPod(in))
		return
	case b.UID != p.UID || p.Spec.NodeName != "":
		fail(out, apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, p.Name, fmt.Errorf("it is another pod, or bound to %q", p.Spec.NodeName)))
		return
	}
	p.Spec.NodeName = b.Target.Name
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now)}}
	s.bound[key(in)] = now
	s.putPod(key(in), p)
	answer(out, http.StatusCreated, &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess})
}

// patchPod applies a patch to a pod's status.
func (s *Server) patchPod(out http.ResponseWriter, in *http.Request) {
	patch, err := io.ReadAll(in.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.patches++
	p := s.pending[key(in)]
	if p == nil || err != nil {
		fail(out, noPod(in))
		return
	}
	next, err := patched(p, patch)
	if err != nil {
		fail(out, apierrors.NewBadRequest(err.Error()))
		return
	}
	s.pending[key(in)] = next
	s.putPod(key(in), next)
	answer(out, http.StatusOK, next)
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

// echo answers a create with the sent object.
func echo(out http.ResponseWriter, in *http.Request) {
	out.Header().Set("Content-Type", in.Header.Get("Content-Type"))
	out.WriteHeader(http.StatusCreated)
	_, _ = io.Copy(out, in.Body) // who asked may be gone
}

// allow authorizes every request to the scheduler.
func allow(out http.ResponseWriter, _ *http.Request) {
	answer(out, http.StatusCreated, &authorizationv1.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"},
		Status:   authorizationv1.SubjectAccessReviewStatus{Allowed: true},
	})
}

// decode reads a body in protobuf or JSON.
func decode(in *http.Request, into runtime.Object) error {
	body, err := io.ReadAll(in.Body)
	if err != nil {
		return err
	}
	_, _, err = scheme.Codecs.UniversalDeserializer().Decode(body, nil, into)
	return err
}

// answer writes an object, in protobuf.
func answer(out http.ResponseWriter, code int, obj runtime.Object) {
	kind := obj.GetObjectKind().GroupVersionKind()
	if known, _, err := scheme.Scheme.ObjectKinds(obj); err == nil {
		kind = known[0]
	}
	body := envelop(kind, must(obj.(marshaler).Marshal()))
	out.Header().Set("Content-Type", protobuf)
	out.Header().Set("Content-Length", strconv.Itoa(len(body)))
	out.WriteHeader(code)
	_, _ = out.Write(body) // who asked may be gone
}

func fail(out http.ResponseWriter, err error) {
	status := apierrors.APIStatus(nil)
	switch err := err.(type) {
	case apierrors.APIStatus:
		status = err
	default:
		status = apierrors.NewInternalError(err)
	}
	s := status.Status()
	s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	body, _ := json.Marshal(s) // plain data always marshals
	out.Header().Set("Content-Type", "application/json")
	out.WriteHeader(int(s.Code))
	_, _ = out.Write(body) // who asked may be gone
}
