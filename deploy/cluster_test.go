// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// patience ends a wait that hangs.
const patience = 60 * time.Second

// stage is a cluster without a scheduler and a person who administers it.
type stage struct {
	*testing.T
	rest   *rest.Config
	client *kubernetes.Clientset
	binary string
}

// TestWhatIsDeployedSchedules: the objects go to a real API server, and the program runs with the command line, the
// configuration and the service account that they say, and nothing more. First as a canary, then in kube-scheduler's
// place, where it binds the pods of its own Deployment.
func TestWhatIsDeployedSchedules(t *testing.T) {
	s := &stage{T: t, binary: build(t)}
	cluster := testcluster.Start(t, testcluster.Options{Nodes: 4, NoHeartbeats: true})
	var err error
	if s.rest, err = clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	s.rest.QPS = -1
	s.client = kubernetes.NewForConfigOrDie(s.rest)

	canary := overlay(t, "canary")
	s.apply(canary)
	s.podsMeetTheStrictestStandard(canary)
	s.mayDoNoMore()
	s.hasItsOwnFlow()
	p := s.run(canary)
	s.answersProbes(p, canary)
	s.pod("first", "kumiki")
	s.bound("default", "first")
	s.showsMetricsToWhomeverMay(p)
	s.pausesForWhomeverMay()
	s.answersWhoSeesOneNamespace(p)
	s.evicts()
	p.end()

	s.apply(overlay(t, "replace"))
	p = s.run(overlay(t, "replace"))
	s.pod("second", "")
	s.pod("third", "kumiki") // what the canary would have taken
	s.bound("default", "second")
	s.bound("default", "third")
	s.replicasAreSpread()
	p.end()
}

// build makes the program under the name that the image gives it.
func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kube-scheduler")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", path, "../cmd/kumiki").CombinedOutput(); err != nil {
		t.Fatalf("building kumiki: %v\n%s", err, out)
	}
	return path
}

// apply does what kubectl apply --server-side does, and takes no field that the API does not know.
func (s *stage) apply(all objects) {
	s.Helper()
	groups, err := restmapper.GetAPIGroupResources(s.client.Discovery())
	if err != nil {
		s.Fatal(err)
	}
	mapper, force := restmapper.NewDiscoveryRESTMapper(groups), true
	for _, o := range all {
		kind := o.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			s.Fatal(err)
		}
		var api dynamic.ResourceInterface = dynamic.NewForConfigOrDie(s.rest).Resource(mapping.Resource)
		if o.GetNamespace() != "" {
			api = dynamic.NewForConfigOrDie(s.rest).Resource(mapping.Resource).Namespace(o.GetNamespace())
		}
		raw, err := json.Marshal(o)
		if err != nil {
			s.Fatal(err)
		}
		opts := metav1.PatchOptions{FieldManager: "test", Force: &force, FieldValidation: metav1.FieldValidationStrict}
		if _, err := api.Patch(s.Context(), o.GetName(), types.ApplyPatchType, raw, opts); err != nil {
			s.Fatalf("applying %s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

// podsMeetTheStrictestStandard asks a namespace that enforces the pod security standard "restricted".
func (s *stage) podsMeetTheStrictestStandard(all objects) {
	s.Helper()
	const strict = "strict"
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: strict, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
	if _, err := s.client.CoreV1().Namespaces().Create(s.Context(), space, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	spec := only[appsv1.Deployment](s.T, all, "Deployment").Spec.Template.Spec
	spec.ServiceAccountName = "default"
	s.eventually("a service account in namespace "+strict, func() error {
		_, err := s.client.CoreV1().ServiceAccounts(strict).Get(s.Context(), "default", metav1.GetOptions{})
		return err
	})
	try := func() error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "kumiki"}, Spec: *spec.DeepCopy()}
		_, err := s.client.CoreV1().Pods(strict).Create(s.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	if err := try(); err != nil {
		s.Error(err)
	}
	spec.Containers[0].SecurityContext = nil
	if err := try(); err == nil || !strings.Contains(err.Error(), "PodSecurity") {
		s.Errorf("a pod without its security context gives %v: this cluster enforces nothing", err)
	}
}

const account = "system:serviceaccount:kube-system:kumiki"

// mayDoNoMore asks for what a scheduler never needs, and for one thing that it does.
func (s *stage) mayDoNoMore() {
	s.Helper()
	for _, tt := range []struct {
		verb, group, resource, name string
		may                         bool
	}{
		{"create", "", "pods", "", false}, {"get", "", "secrets", "", false}, {"list", "", "configmaps", "", false},
		{"patch", "", "nodes", "", false}, {"update", "coordination.k8s.io", "leases", "other", false},
		{"update", "coordination.k8s.io", "leases", "kumiki", true},
		{"delete", "", "pods", "", true}, {"list", "policy", "poddisruptionbudgets", "", true}, // to evict
		{"deletecollection", "", "pods", "", false}, {"update", "policy", "poddisruptionbudgets", "", false},
	} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: account, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: "kube-system", Verb: tt.verb, Group: tt.group, Resource: tt.resource, Name: tt.name},
		}}
		got, err := s.client.AuthorizationV1().SubjectAccessReviews().Create(s.Context(), review, metav1.CreateOptions{})
		if err != nil {
			s.Fatal(err)
		}
		if got.Status.Allowed != tt.may {
			s.Errorf("may %s %s %s: %v, want %v", tt.verb, tt.resource, tt.name, got.Status.Allowed, tt.may)
		}
	}
}

// hasItsOwnFlow reads which flow schema the API server sorts a request of the account under.
func (s *stage) hasItsOwnFlow() {
	s.Helper()
	schema, err := s.client.FlowcontrolV1().FlowSchemas().Get(s.Context(), "kumiki", metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	client, err := rest.HTTPClientFor(s.as("kube-system", "kumiki"))
	if err != nil {
		s.Fatal(err)
	}
	s.eventually("the flow schema in force", func() error {
		reply, err := client.Get(s.rest.Host + "/api/v1/nodes?limit=1")
		if err != nil {
			return err
		}
		reply.Body.Close()
		if got := reply.Header.Get("X-Kubernetes-PF-FlowSchema-UID"); reply.StatusCode != http.StatusOK || got != string(schema.UID) {
			return fmt.Errorf("%s under flow schema %s, want %s", reply.Status, got, schema.UID)
		}
		return nil
	})
}

// token is what a pod of the service account finds in its volume.
func (s *stage) token(namespace, name string) string {
	s.Helper()
	made, err := s.client.CoreV1().ServiceAccounts(namespace).CreateToken(s.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return made.Status.Token
}

func (s *stage) as(namespace, name string) *rest.Config {
	c := rest.AnonymousClientConfig(s.rest)
	c.BearerToken = s.token(namespace, name)
	return c
}

// process is the program, running.
type process struct {
	*testing.T
	cmd  *exec.Cmd
	log  bytes.Buffer // to be read after the end
	gone chan error
	url  string
}

// run starts the container of the Deployment: its command line, with the paths and the port of this machine. The
// kubeconfig stands for the files that a pod finds its account in.
func (s *stage) run(all objects) *process {
	s.Helper()
	container := only[appsv1.Deployment](s.T, all, "Deployment").Spec.Template.Spec.Containers[0]
	if len(container.Command) != 1 || filepath.Base(container.Command[0]) != filepath.Base(s.binary) {
		s.Fatalf("the container starts %q", container.Command)
	}
	text, _ := scheduling(s.T, all)
	dir := s.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	port := fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	p := &process{T: s.T, gone: make(chan error, 1), url: "https://127.0.0.1:" + port}
	here := strings.NewReplacer(container.VolumeMounts[0].MountPath, dir, fmt.Sprint(container.Ports[0].ContainerPort), port)
	var args []string
	for _, a := range container.Args {
		args = append(args, here.Replace(a))
	}
	p.cmd = exec.Command(s.binary, append(args, "--bind-address=127.0.0.1", "--kubeconfig="+s.kubeconfig(dir))...)
	p.cmd.Stderr = &p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		s.Fatal(err)
	}
	go func() { p.gone <- p.cmd.Wait() }()
	s.Cleanup(p.end)
	return p
}

func (s *stage) kubeconfig(dir string) string { return s.kubeconfigOf("kube-system", "kumiki", dir) }

// kubeconfigOf stands for the files that a pod finds its account in.
func (s *stage) kubeconfigOf(namespace, name, dir string) string {
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{Server: s.rest.Host, CertificateAuthorityData: s.rest.CAData, CertificateAuthority: s.rest.CAFile}
	c.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: s.token(namespace, name)}
	c.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	c.CurrentContext = "x"
	path := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		s.Fatal(err)
	}
	return path
}

// end tells the process to end and reads its log: an account that lacked a right would have been told so.
func (p *process) end() {
	if p.cmd.ProcessState != nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-p.gone:
		if err != nil {
			p.Errorf("kumiki ended: %v", err)
		}
	case <-time.After(patience):
		p.Errorf("kumiki did not end")
		_ = p.cmd.Process.Kill()
		<-p.gone
	}
	for line := range strings.Lines(p.log.String()) {
		if strings.Contains(line, "forbidden") || strings.Contains(line, "not allowed") {
			p.Errorf("the account lacks a right: %s", line)
		}
	}
	if p.Failed() {
		p.Logf("what kumiki said:\n%s", p.log.String())
	}
}

// get asks the process's own port, as a kubelet or Prometheus does.
func (p *process) get(path, token string) (status int, body string, err error) {
	ctx, cancel := context.WithTimeout(p.Context(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path, nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// The certificate is made at start and signed by itself; probes do not check it either.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	reply, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer reply.Body.Close()
	raw, err := io.ReadAll(reply.Body)
	return reply.StatusCode, string(raw), err
}

func (s *stage) answersProbes(p *process, all objects) {
	s.Helper()
	c := only[appsv1.Deployment](s.T, all, "Deployment").Spec.Template.Spec.Containers[0]
	for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		if probe.HTTPGet.Scheme != corev1.URISchemeHTTPS || probe.HTTPGet.Port.String() != c.Ports[0].Name {
			s.Errorf("a probe asks %s on port %s", probe.HTTPGet.Scheme, probe.HTTPGet.Port.String())
		}
		s.eventually(probe.HTTPGet.Path, func() error {
			status, body, err := p.get(probe.HTTPGet.Path, "")
			if err == nil && status != http.StatusOK {
				err = fmt.Errorf("%d: %s", status, body)
			}
			return err
		})
	}
}

// showsMetricsToWhomeverMay: to nobody unknown, to no account without the role, and to one with it.
func (s *stage) showsMetricsToWhomeverMay(p *process) {
	s.Helper()
	ctx := s.Context()
	for _, name := range []string{"prometheus", "curious"} {
		who := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := s.client.CoreV1().ServiceAccounts("default").Create(ctx, who, metav1.CreateOptions{}); err != nil {
			s.Fatal(err)
		}
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "prometheus"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "kumiki-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "prometheus", Namespace: "default"}},
	}
	if _, err := s.client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	for _, token := range []string{"", s.token("default", "curious")} {
		if status, _, err := p.get("/metrics", token); err != nil || status != http.StatusForbidden {
			s.Errorf("someone without the role (with a token: %v) got %d, %v", token != "", status, err)
		}
	}
	token := s.token("default", "prometheus")
	s.eventually("metrics with the pod that was bound", func() error {
		status, body, err := p.get("/metrics", token)
		if err == nil && (status != http.StatusOK || !strings.Contains(body, `scheduler_schedule_attempts_total{profile="kumiki",result="scheduled"} 1`)) {
			err = fmt.Errorf("status %d, %d bytes", status, len(body))
		}
		if err == nil {
			s.servesItsList(body)
		}
		return err
	})
}

// pausesForWhomeverMay: for an account with the role of operator.yaml and nothing more, and for no other. The pods of a
// pause wait for its end. It catches a right that the command needs and the role lacks (take out "patch", and nothing pauses).
func (s *stage) pausesForWhomeverMay() {
	s.Helper()
	raw, err := os.ReadFile("operator.yaml")
	if err != nil {
		s.Fatal(err)
	}
	role := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(raw, role); err != nil {
		s.Fatal(err)
	}
	s.apply(objects{role})
	ctx := s.Context()
	who := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "operator"}}
	if _, err := s.client.CoreV1().ServiceAccounts("default").Create(ctx, who, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "operator"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.GetName()},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "operator", Namespace: "default"}},
	}
	if _, err := s.client.RbacV1().RoleBindings(role.GetNamespace()).Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	as := func(name, verb string) error {
		file := s.kubeconfigOf("default", name, s.TempDir())
		out, err := s.kumiki(verb, "--scheduler-lease=kube-system/kumiki", "--kubeconfig="+file).CombinedOutput()
		if err != nil {
			return fmt.Errorf("kumiki %s by %s: %w: %s", verb, name, err, out)
		}
		return nil
	}
	if err := as("curious", "pause"); err == nil || !strings.Contains(err.Error(), "forbidden") {
		s.Errorf("someone without the role may pause: %v", err)
	}
	s.eventually("the role of the operator", func() error { return as("operator", "pause") })
	s.pod("paused", "kumiki")
	if err := as("operator", "resume"); err != nil {
		s.Error(err)
	}
	s.bound("default", "paused")
}

func (s *stage) pod(name, scheduler string) {
	s.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{SchedulerName: scheduler, Containers: []corev1.Container{{Name: "c", Image: "none"}}},
	}
	s.eventually("making pod "+name, func() error { // the namespace's account comes a moment after the namespace
		_, err := s.client.CoreV1().Pods("default").Create(s.Context(), pod, metav1.CreateOptions{})
		return err
	})
}

// evicts: a pod gets the host port of another by its priority.
func (s *stage) evicts() {
	s.Helper()
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "urgent"}, Value: 1000}
	if _, err := s.client.SchedulingV1().PriorityClasses().Create(s.Context(), class, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	nodes, err := s.client.CoreV1().Nodes().List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	for _, named := range [][2]string{{"evicted", ""}, {"urgent", "urgent"}} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: named[0]}, Spec: corev1.PodSpec{
			SchedulerName: "kumiki", PriorityClassName: named[1], NodeSelector: map[string]string{corev1.LabelHostname: nodes.Items[0].Name},
			Containers: []corev1.Container{{Name: "c", Image: "none", Ports: []corev1.ContainerPort{{ContainerPort: 80, HostPort: 9999}}}}}}
		if _, err := s.client.CoreV1().Pods("default").Create(s.Context(), pod, metav1.CreateOptions{}); err != nil {
			s.Fatal(err)
		}
		s.bound("default", named[0])
	}
	s.eventually("the end of the pod that was in the way", func() error {
		_, err := s.client.CoreV1().Pods("default").Get(s.Context(), "evicted", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there, or: %v", err)
	})
}

func (s *stage) bound(namespace, name string) {
	s.Helper()
	s.eventually("pod "+name+" on a node", func() error {
		pod, err := s.client.CoreV1().Pods(namespace).Get(s.Context(), name, metav1.GetOptions{})
		if err == nil && pod.Spec.NodeName == "" {
			err = fmt.Errorf("conditions: %+v", pod.Status.Conditions)
		}
		return err
	})
}

// replicasAreSpread: the pods that the Deployment's controller made, all of them on nodes of their own.
func (s *stage) replicasAreSpread() {
	s.Helper()
	s.eventually("three replicas on three nodes", func() error {
		pods, err := s.client.CoreV1().Pods("kube-system").List(s.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=kumiki"})
		if err != nil {
			return err
		}
		on := map[string]bool{} // node -> a current replica is on it
		for _, p := range pods.Items {
			if p.DeletionTimestamp == nil && p.Spec.NodeName != "" {
				on[p.Spec.NodeName] = true
			}
		}
		if len(on) != 3 {
			return fmt.Errorf("%d pods on nodes %v", len(pods.Items), on)
		}
		return nil
	})
}

func (s *stage) eventually(what string, try func() error) {
	s.Helper()
	var err error
	for limit := time.Now().Add(patience); time.Now().Before(limit); time.Sleep(50 * time.Millisecond) {
		if err = try(); err == nil {
			return
		}
	}
	s.Fatalf("waited for %s: %v", what, err)
}
