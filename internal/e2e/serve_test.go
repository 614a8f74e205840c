// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// shownFlags are what /flagz shows: name -> value.
type shownFlags map[string]string

// GetFlagz is all of them.
func (f shownFlags) GetFlagz() map[string]string { return f }

// tokenFor makes a service account, with a right to all endpoints or without any, and a token for it.
func tokenFor(t *testing.T, client kubernetes.Interface, name string, rights bool) string {
	t.Helper()
	accounts := client.CoreV1().ServiceAccounts("default")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := accounts.Create(t.Context(), &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	must(err)
	if rights {
		meta := metav1.ObjectMeta{Name: "endpoints-of-the-scheduler"}
		_, err = client.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta,
			Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"*"}, Verbs: []string{"get", "put"}}}}, metav1.CreateOptions{})
		must(err)
		_, err = client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: name}}}, metav1.CreateOptions{})
		must(err)
	}
	made, err := accounts.CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(err)
	return made.Status.Token
}

// TestEndpointsOfAScheduler asks every endpoint of a scheduler that runs with exactly the role
// system:kube-scheduler, with a token that has the right, with one that has none, with a wrong one, and without.
// Who comes without a token is system:anonymous, as for kube-scheduler, and is forbidden; only a wrong token is not
// authenticated. Health is for all.
func TestEndpointsOfAScheduler(t *testing.T) {
	cluster := testcluster.Start(t, testcluster.Options{Nodes: 3, NoHeartbeats: true})
	client := adminClient(t, cluster)
	allowed, stranger := tokenFor(t, client, "allowed", true), tokenFor(t, client, "stranger", false)

	var log lines
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log)))
	o := options(cluster.SchedulerKubeconfig)
	o.Serve.Flags = shownFlags{"leader-elect": "true"}
	scheduler, end := runInside(klog.NewContext(t.Context(), logger), t, o)
	defer end()

	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(scheduler.Endpoint().CA) {
		t.Fatal("the endpoint's CA is no certificate")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer transport.CloseIdleConnections()
	ask := func(method, path, token, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "https://"+scheduler.Endpoint().Address+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := (&http.Client{Transport: transport, Timeout: patience}).Do(req)
		if err != nil {
			return 0, err.Error()
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			return 0, err.Error()
		}
		return res.StatusCode, string(text)
	}

	create(t, client, pod("runs", "100m"))
	eventually(t, "the scheduler is ready", func() (bool, string) {
		code, text := ask("GET", "/readyz", "", "")
		return code == 200, text
	})
	eventually(t, "a pod is bound, and the metrics of each second were updated since", func() (bool, string) {
		_, text := ask("GET", "/metrics", allowed, "")
		return strings.Contains(text, `scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} `) &&
			strings.Contains(text, `kumiki_watch_staleness_seconds{watch="pods"}`), text
	})
	for _, e := range []struct{ method, path, body, want string }{
		{"GET", "/metrics", "", `scheduler_plugin_execution_duration_seconds_count{`},
		{"GET", "/metrics", "", `scheduler_framework_extension_point_duration_seconds_count{extension_point="Bind",profile="default-scheduler",status="Success"} `},
		{"GET", "/metrics", "", `kumiki_watch_staleness_seconds{watch="pods"}`},
		{"GET", "/metrics", "", `scheduler_preemption_attempts_total 0`},
		{"GET", "/metrics", "", `leader_election_master_status{name="kube-scheduler"} 1`},
		{"GET", "/metrics/resources", "", `kube_pod_resource_request{namespace="default",node="`},
		{"GET", "/metrics/slis", "", `kubernetes_healthcheck{name="leaderElection",type="readyz"} 1`},
		{"GET", "/configz", "", `{"componentconfig":{"kind":"KubeSchedulerConfiguration","apiVersion":"kubescheduler.config.k8s.io/v1"`},
		{"GET", "/flagz", "", "leader-elect"},
		{"GET", "/statusz", "", "Emulation version"},
		{"GET", "/readyz/leaderElection", "", "ok"},
		{"GET", "/readyz/sched-handler-sync", "", "ok"},
		{"GET", "/debug/pprof/", "", "goroutine"},
		{"PUT", "/debug/flags/v", "0", "successfully set klog.logging.verbosity to 0"},
	} {
		for _, who := range []struct {
			name, token string
			code        int
			want        string
		}{{"who may", allowed, 200, e.want}, {"who may not", stranger, 403, "forbidden"}, {"nobody", "", 403, "system:anonymous"}, {"a wrong token", "x", 401, "Unauthorized"}} {
			if code, text := ask(e.method, e.path, who.token, e.body); code != who.code || !strings.Contains(text, who.want) {
				t.Errorf("%s %s by %s: %d %.500s, want %d and %s", e.method, e.path, who.name, code, text, who.code, who.want)
			}
		}
	}
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		if code, text := ask("GET", path, "", ""); code != 200 {
			t.Errorf("GET %s by nobody: %d %s", path, code, text)
		}
	}

	if err := syscall.Kill(os.Getpid(), syscall.SIGUSR2); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the dump ends with the queue", func() (bool, string) {
		return strings.Contains(log.String(), "Dump of scheduling queue"), log.String()
	})
	for _, want := range []string{"Cache matches the API server", "Dump of cached NodeInfo", "default/runs"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log.String())
		}
	}
}
