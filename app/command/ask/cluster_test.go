// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilproxy "k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/apiserver/pkg/util/proxy"

	"github.com/kumiki-scheduler/kumiki/internal/fakekubelet"
)

// serveAPI answers what the command asks an API server.
func (w *world) serveAPI(rw http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	name := ""
	at := slices.Index(parts, "namespaces") + 2 // the resource
	if len(parts) > at+1 {
		name = parts[at+1]
	}
	verb := map[bool]string{true: "get", false: "list"}[name != ""]
	if !strings.HasSuffix(r.URL.Path, "/portforward") && w.forbids(verb, parts[at], name) {
		answerStatus(rw, http.StatusForbidden, metav1.StatusReasonForbidden, "forbidden: cannot "+verb+" "+parts[at])
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	leases := slices.Clone(w.more)
	if w.lease != nil {
		leases = append(leases, w.lease)
	}
	switch {
	case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
		var review authorizationv1.SelfSubjectAccessReview
		json.NewDecoder(r.Body).Decode(&review)
		review.Status.Allowed = !w.forbids("create", "pods/portforward", "")
		json.NewEncoder(rw).Encode(review)
	case path.Base(r.URL.Path) == "portforward":
		if w.forbids("create", "pods/portforward", "") {
			answerStatus(rw, http.StatusForbidden, metav1.StatusReasonForbidden, "cannot create pods/portforward")
		} else if w.forward == nil || !slices.ContainsFunc(w.pods, func(p *v1.Pod) bool { return p.Name == name }) {
			answerStatus(rw, http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("pods %q not found", name))
		} else {
			w.forward.ServeHTTP(rw, r)
		}
	case parts[at] == "pods" && name == "":
		list := v1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
		key, value, _ := strings.Cut(r.URL.Query().Get("labelSelector"), "=")
		for _, p := range w.pods {
			if p.Labels[key] == value {
				list.Items = append(list.Items, *p)
			}
		}
		json.NewEncoder(rw).Encode(list)
	case parts[at] == "leases":
		if w.renews {
			w.lease.Spec.RenewTime.Time = w.lease.Spec.RenewTime.Add(time.Second)
		}
		answerNamed(rw, leases, func(l *coordinationv1.Lease) bool { return l.Name == name })
	default:
		answerNamed(rw, w.pods, func(p *v1.Pod) bool { return p.Name == name })
	}
}

func (w *world) forbids(verb, resource, name string) bool {
	return slices.Contains(w.denied, verb+" "+resource) || slices.Contains(w.denied, verb+" "+resource+"/"+name)
}

func answerNamed[T any](rw http.ResponseWriter, list []T, is func(T) bool) {
	if i := slices.IndexFunc(list, is); i >= 0 {
		json.NewEncoder(rw).Encode(list[i])
		return
	}
	answerStatus(rw, http.StatusNotFound, metav1.StatusReasonNotFound, "not found")
}

func answerStatus(rw http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(code)
	json.NewEncoder(rw).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status: "Failure", Code: int32(code), Reason: reason, Message: message})
}

// inWebSockets is the handler of an API server that takes SPDY in WebSockets too. It is the API server's own code: a
// tunnel and the proxy to the kubelet.
func inWebSockets(t *testing.T, k *fakekubelet.Kubelet) http.Handler {
	server := httptest.NewServer(k)
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	toKubelet := utilproxy.NewUpgradeAwareHandler(at, nil, false, true, badGateway{})
	tunneled := proxy.NewTunnelingHandler(toKubelet)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
			tunneled.ServeHTTP(w, r)
			return
		}
		toKubelet.ServeHTTP(w, r)
	})
}

// badGateway answers a request that the proxy could not pass on.
type badGateway struct{}

func (badGateway) Error(w http.ResponseWriter, _ *http.Request, err error) {
	http.Error(w, err.Error(), http.StatusBadGateway)
}

// forwarded is a world in which only the API server reaches the scheduler, which is in a pod.
func forwarded(t *testing.T, name string, labels map[string]string) (*world, *fakekubelet.Kubelet) {
	t.Helper()
	w := newWorld(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	real := w.scheduler.Listener.Addr().String()
	k := &fakekubelet.Kubelet{Address: func() string { return real }}
	w.forward = inWebSockets(t, k)
	for key, annotation := range w.lease.Annotations {
		if annotation == real {
			w.lease.Annotations[key] = closed.Addr().String()
		}
	}
	closed.Close()
	w.pods = []*v1.Pod{{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, Labels: labels},
		Status:     v1.PodStatus{Phase: v1.PodRunning}}}
	return w, k
}
