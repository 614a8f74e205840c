// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unique"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"go.uber.org/goleak"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
	"github.com/kumiki-scheduler/kumiki/kube/metrics"
)

// flags are shown by /flagz: name -> value.
type flags map[string]string

func (f flags) GetFlagz() map[string]string { return f }

// reviewer answers token and access reviews as an API server does: token "good" is user viewer, who may read all but
// what is under /debug, token "admin" may do everything, token "tenant" may get the pods of namespace ml; no client may
// read the configuration of authentication.
func reviewer(t *testing.T) (kubeconfig string, close func()) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/tokenreviews"):
			var review authenticationv1.TokenReview
			json.NewDecoder(r.Body).Decode(&review)
			users := map[string]string{"good": "viewer", "admin": "admin", "tenant": "tenant"}
			if user := users[review.Spec.Token]; user != "" {
				review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: user}}
			}
			json.NewEncoder(w).Encode(review)
		case strings.HasSuffix(r.URL.Path, "/subjectaccessreviews"):
			var review authorizationv1.SubjectAccessReview
			json.NewDecoder(r.Body).Decode(&review)
			if about := review.Spec.ResourceAttributes; about != nil {
				review.Status.Allowed = review.Spec.User == "tenant" && about.Namespace == "ml" && about.Verb == "get" &&
					about.Group == "" && about.Resource == "pods" && about.Subresource == ""
			} else {
				path := review.Spec.NonResourceAttributes.Path
				review.Status.Allowed = review.Spec.User == "admin" ||
					review.Spec.User == "viewer" && !strings.HasPrefix(path, "/debug/")
			}
			json.NewEncoder(w).Encode(review)
		default:
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
		}
	}))
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n", server.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig, server.Close
}

// TestHealthIsForAllAndTheRestForWhomTheAPIServerLetsIn starts a server the way a scheduler does, with a configuration
// of authentication that cannot be read.
func TestHealthIsForAllAndTheRestForWhomTheAPIServerLetsIn(t *testing.T) {
	metrics.Process()
	// k8s.io/apiserver drops the controller of a configuration that it cannot read, with its queues.
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent(),
		goleak.IgnoreTopFunction("k8s.io/client-go/util/workqueue.(*Typed[...]).updateUnfinishedWorkLoop"),
		goleak.IgnoreTopFunction("k8s.io/client-go/util/workqueue.(*delayingType[...]).waitingLoop"))
	kubeconfig, closeReviewer := reviewer(t)
	o := DefaultOptions()
	o.Secure.BindAddress = net.IPv4(127, 0, 0, 1)
	var err error
	if o.Secure.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	o.Authentication.RemoteKubeConfigFile, o.Authorization.RemoteKubeConfigFile = kubeconfig, kubeconfig
	o.Profiling = true
	o.Flags = flags{"config": "/etc/scheduler.yaml"}
	o.Config = &configv1.KubeSchedulerConfiguration{TypeMeta: metav1.TypeMeta{
		APIVersion: "kubescheduler.config.k8s.io/v1", Kind: "KubeSchedulerConfiguration"}}
	s, err := NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	one := kubetest.NewRecord(kubetest.BoundPod("p", "1", "a"))
	one.Limits = unique.Make("example.com/gpu=2,memory=1.073741824e+09")
	synced, ending := make(chan struct{}), make(chan struct{})
	health := Health{Leads: func() bool { return true }, Stalled: func() time.Duration { return 0 }, Synced: synced, Ending: ending,
		Pods: func() []*cluster.Pod { return []*cluster.Pod{one} }}
	err = s.Serve(health, map[string]http.Handler{
		"/kumiki/":       narrowHandler{},
		"/kumiki/strict": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "strict") }),
	})
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(s.Endpoint().CA) {
		t.Fatal("the endpoint's CA is no certificate")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	client := &http.Client{Transport: transport, Timeout: 30 * time.Second}
	ask := func(path, token string) (int, string) {
		t.Helper()
		req, err := http.NewRequest(http.MethodGet, "https://"+s.Endpoint().Address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(body)
	}

	for _, c := range []struct {
		path, token string
		code        int
		body        string
	}{
		{"/healthz", "", 200, "ok"},
		{"/livez?verbose", "", 200, "[+]scheduling-loop ok"},
		{"/readyz", "", 500, "[-]sched-handler-sync failed"},
		{"/metrics", "", 403, "forbidden"},
		{"/metrics", "bad", 401, "Unauthorized"},
		{"/metrics", "good", 200, "kumiki_loop_heartbeat_seconds"},
		{"/metrics/slis", "good", 200, "kubernetes_healthcheck"},
		{"/metrics/resources", "", 403, "forbidden"},
		{"/metrics/resources", "good", 200, `kube_pod_resource_request{namespace="ns",node="a",pod="p",priority="0",resource="cpu",scheduler="default-scheduler",unit="cores"} 1`},
		{"/metrics/resources", "good", 200, `kube_pod_resource_limit{namespace="ns",node="a",pod="p",priority="0",resource="memory",scheduler="default-scheduler",unit="bytes"} 1.073741824e+09`},
		{"/metrics/resources", "good", 200, `kube_pod_resource_limit{namespace="ns",node="a",pod="p",priority="0",resource="example.com/gpu",scheduler="default-scheduler",unit=""} 2`},
		{"/configz", "", 403, "forbidden"},
		{"/configz", "good", 200, `{"componentconfig":{"kind":"KubeSchedulerConfiguration","apiVersion":"kubescheduler.config.k8s.io/v1"`},
		{"/flagz", "", 403, "forbidden"},
		{"/flagz", "good", 200, "/etc/scheduler.yaml"},
		{"/statusz", "", 403, "forbidden"},
		{"/statusz", "good", 200, "Emulation version"},
		{"/debug/pprof/", "good", 403, "forbidden"},
		{"/debug/pprof/", "admin", 200, "goroutine"},
		{"/debug/pprof/", "", 403, "forbidden"},
		{"/debug/flags/v", "good", 403, "forbidden"},
		{"/debug/flags/v", "admin", 406, "unsupported http method"}, // let in, and only PUT is understood
		// An identity that may not read the path is asked for by verb and namespace. Below other paths that right does
		// not count.
		{"/kumiki/v1/queue", "", 200, "get ml: false"},
		{"/kumiki/v1/queue", "bad", 401, "Unauthorized"},
		{"/kumiki/v1/queue", "good", 200, "asked /kumiki/v1/queue"},
		{"/kumiki/ml", "tenant", 200, "get ml: true"},
		{"/kumiki/ml", "tenant", 200, "list ml: false"},
		{"/kumiki/ml", "tenant", 200, "get shop: false"},
		{"/kumiki/ml", "tenant", 200, `user "tenant" may not get pod "web" in namespace "shop"`},
		{"/kumiki/strict", "tenant", 403, "forbidden"},
		{"/kumiki/strict", "good", 200, "strict"},
		{"/metrics", "tenant", 403, "forbidden"},
	} {
		if code, body := ask(c.path, c.token); code != c.code || !strings.Contains(body, c.body) {
			t.Errorf("GET %s with token %q: %d %.300s, want %d and %q", c.path, c.token, code, body, c.code, c.body)
		}
	}
	close(synced)
	if code, body := ask("/readyz", ""); code != 200 {
		t.Errorf("readyz after the lists: %d %s", code, body)
	}
	close(ending)
	if code, body := ask("/readyz", ""); code != 500 || !strings.Contains(body, "shutdown") {
		t.Errorf("readyz at the end: %d %s", code, body)
	}
	transport.CloseIdleConnections()
	s.Stop()
	closeReviewer()
}

// narrowHandler shows the rights of identities that may not read its path.
type narrowHandler struct{}

func (narrowHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	io.WriteString(w, "asked "+r.URL.Path)
}

func (narrowHandler) ServeNarrow(w http.ResponseWriter, r *http.Request,
	may func(ctx context.Context, verb, namespace, name string) (bool, string, error)) {
	for _, about := range [][2]string{{"get", "ml"}, {"list", "ml"}, {"get", "shop"}} {
		allowed, denied, err := may(r.Context(), about[0], about[1], "web")
		fmt.Fprintf(w, "%s %s: %v %s %v\n", about[0], about[1], allowed, denied, err)
	}
}

func TestServingCanBeSwitchedOff(t *testing.T) {
	o := DefaultOptions()
	o.Secure.BindPort = 0
	if s, err := NewServer(o); s != nil || err != nil {
		t.Errorf("got %v, %v", s, err)
	}
}

func TestATakenPortIsAClearError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	o := DefaultOptions()
	o.Secure.BindAddress = net.IPv4(127, 0, 0, 1)
	o.Secure.BindPort = l.Addr().(*net.TCPAddr).Port
	if _, err := NewServer(o); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("got %v", err)
	}
}
