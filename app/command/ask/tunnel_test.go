// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/internal/fakekubelet"
	"github.com/kumiki-scheduler/kumiki/kube"
)

// TestThroughTheAPIServer: where the address in the lease cannot be reached, the port of the holder's pod is forwarded:
// of the pod that the lease names, of a pod by the host name, and of kubeadm's static pod, whose scheduler listens on
// loopback alone. The certificate is checked as for a direct connection, and several connections share one tunnel.
func TestThroughTheAPIServer(t *testing.T) {
	for name, tt := range map[string]struct {
		pod   string
		world func(*world, *fakekubelet.Kubelet)
	}{
		"named in the lease": {"kumiki-abc", func(w *world, _ *fakekubelet.Kubelet) {
			w.lease.Annotations[kube.PodAnnotation] = "kube-system/kumiki-abc"
		}},
		"by host name":         {"host", nil},
		"static pod":           {"kube-scheduler-host", nil},
		"without WebSockets":   {"host", func(w *world, k *fakekubelet.Kubelet) { w.forward = withoutWebSockets(k) }},
		"without other rights": {"host", func(w *world, _ *fakekubelet.Kubelet) { w.denied = []string{"list pods", "get pods"} }},
	} {
		t.Run(name, func(t *testing.T) {
			w, k := forwarded(t, tt.pod, nil)
			if tt.world != nil {
				tt.world(w, k)
			}
			c, err := w.find(t)
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if queue, err := c.Queue(t.Context(), ""); err != nil || queue.Counts.Gated != 7 {
					t.Fatalf("queue: %+v, %v", queue, err)
				}
				c.http.CloseIdleConnections() // the next one is a new stream
			}
			if k.Requests() != 1 {
				t.Errorf("%d tunnels for one client", k.Requests())
			}
		})
	}
}

func withoutWebSockets(k *fakekubelet.Kubelet) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
			http.Error(w, "no WebSockets here", http.StatusBadRequest)
			return
		}
		k.ServeHTTP(w, r)
	})
}

// TestNoCredentialsForAnotherServer: a process that serves on the scheduler's loopback address of this machine is not
// the scheduler. It gets no request, and the port is forwarded. Fault: the certificate is not checked.
func TestNoCredentialsForAnotherServer(t *testing.T) {
	w, _ := forwarded(t, "host", nil)
	var asked atomic.Int32
	trap := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	trap.TLS = selfSigned(t)
	trap.StartTLS()
	t.Cleanup(trap.Close)
	w.lease.Annotations[kube.EndpointAnnotation] = trap.Listener.Addr().String()
	c, err := w.find(t)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Queue(t.Context(), ""); err != nil {
		t.Error(err)
	}
	if asked.Load() > 0 {
		t.Error("another server on the address got a request")
	}
}

// TestWithoutElection: a scheduler with --leader-elect=false has no lease, and is found by its pod: by the labels of the
// manifests, by those of kubeadm unless the lease shows another scheduler, or by name.
func TestWithoutElection(t *testing.T) {
	ours, kubeadm := map[string]string{"app.kubernetes.io/name": "kumiki"}, map[string]string{"component": "kube-scheduler"}
	for name, tt := range map[string]struct {
		labels map[string]string
		change func(*world)
		where  Where
		want   string // of the error; empty for none
	}{
		"manifests":         {ours, func(w *world) { w.lease = nil }, Default(), ""},
		"kubeadm":           {kubeadm, func(w *world) { w.lease = nil }, Default(), ""},
		"kubeadm, upstream": {kubeadm, func(w *world) { w.lease.Annotations = nil }, Default(), "not kumiki"},
		"beside upstream":   {ours, func(w *world) { w.lease.Annotations = nil }, Default(), ""},
		"no labels":         {nil, func(w *world) { w.lease = nil }, Default(), "no scheduler runs"},
		"not running":       {ours, func(w *world) { w.lease = nil; w.pods[0].Status.Phase = "Pending" }, Default(), "no scheduler runs"},
		"no rights": {ours, func(w *world) { w.lease = nil; w.denied = []string{"list pods"} }, Default(),
			"you may not list pods in namespace kube-system: bind the Role kumiki-viewer"},
		"named": {nil, func(w *world) { w.lease = nil; w.denied = []string{"list pods", "get pods"} },
			Where{Namespace: "kube-system", Pod: "kube-system/host"}, ""},
		"named wrongly": {nil, func(w *world) {}, Where{Namespace: "kube-system", Pod: "kube-system/other"},
			"there is no pod kube-system/other"},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := forwarded(t, "host", tt.labels)
			tt.change(w)
			c, err := w.findIn(t, tt.where)
			if err == nil {
				_, err = c.Queue(t.Context(), "")
			}
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestBySchedulerName: of several schedulers, the one with a profile of the pod's scheduler name is asked first, then
// one whose names are unknown. A lease of another name does not count, whatever it carries. Fault: the order of leases
// decides.
func TestBySchedulerName(t *testing.T) {
	w := newWorld(t)
	canary, other := w.lease.DeepCopy(), w.lease.DeepCopy()
	w.lease.Annotations[kube.SchedulersAnnotation] = "default-scheduler"
	canary.Name, canary.Annotations[kube.SchedulersAnnotation] = "kumiki", "kumiki,batch"
	other.Name, other.Annotations[kube.SchedulersAnnotation] = "another-controller", "batch,default-scheduler"
	w.more = append(w.more, canary, other)
	for name, want := range map[string]string{
		"batch": "kumiki,batch", "default-scheduler": "default-scheduler", "": "default-scheduler",
	} {
		found, err := Find(t.Context(), w.cfg, Default(), name)
		if err != nil || len(found) != 2 || strings.Join(found[0].Names, ",") != want {
			t.Errorf("%q: %v, %v, want %s first of 2", name, found, err, want)
		}
	}
	delete(canary.Annotations, kube.SchedulersAnnotation)
	if found, err := Find(t.Context(), w.cfg, Default(), "third"); err != nil || found[0].Names != nil {
		t.Errorf("an unknown name: %v, %v, want the one whose names are unknown first", found, err)
	}
}

// TestWhyNoTunnel: each way in which no port can be forwarded has its own sentence.
func TestWhyNoTunnel(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*world, *fakekubelet.Kubelet)
		want   string
	}{
		"no right": {func(w *world, _ *fakekubelet.Kubelet) { w.denied = []string{"create pods/portforward"} },
			"you may not create pods/portforward in namespace kube-system: bind the Role kumiki-viewer"},
		"no pod": {func(w *world, _ *fakekubelet.Kubelet) { w.pods[0].Name = "other" },
			"no pod kube-system/host or kube-system/kube-scheduler-host was found"},
		"port closed": {func(_ *world, k *fakekubelet.Kubelet) { k.Address = func() string { return "127.0.0.1:1" } },
			"connection refused"},
		"another scheduler": {func(w *world, _ *fakekubelet.Kubelet) { w.lease.Annotations[kube.CAAnnotation] = "" }, "certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			w, k := forwarded(t, "host", nil)
			tt.change(w, k)
			c, err := w.find(t)
			if err == nil {
				_, err = c.Queue(t.Context(), "")
			}
			if name == "another scheduler" { // the tunnel proves the pod where the lease has no certificate
				tt.want = ""
			}
			if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) || tt.want == "" && err != nil {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestBadKubeconfig: errors of the API server that the kubeconfig causes say so.
func TestBadKubeconfig(t *testing.T) {
	refuse := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answerStatus(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized")
	}))
	t.Cleanup(refuse.Close)
	for name, tt := range map[string]struct {
		change func(*world)
		want   string
	}{
		"rejected": {func(w *world) { w.cfg.Host, w.cfg.TLSClientConfig.Insecure = refuse.URL, true },
			"does not accept your credentials: they have expired, or are of another cluster"},
		"expired": {func(w *world) {
			w.cfg.Host, w.cfg.TLSClientConfig.Insecure = refuse.URL, true
			w.cfg.TLSClientConfig.CertData, w.cfg.TLSClientConfig.KeyData = expiredPair(t)
		}, "the client certificate in your kubeconfig expired on 2020-01-02"},
		"another cluster": {func(w *world) { w.cfg.Host = refuse.URL }, "signed by another authority"},
		"no rights": {func(w *world) { w.denied = []string{"get leases", "list pods"} },
			"bind the Role kumiki-viewer"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tt.change(w)
			if _, err := w.find(t); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
