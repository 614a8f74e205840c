// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// TestAShadowMayReadAndNothingElse: its account has one role of our making, whose verbs change nothing, and may read the
// one ConfigMap that says how to authenticate others.
// Fault: a verb that writes; a right to everything, secrets included.
func TestAShadowMayReadAndNothingElse(t *testing.T) {
	all := overlay(t, "shadow")
	var roles []string
	for _, o := range all {
		if strings.HasSuffix(o.GetKind(), "Binding") {
			var b rbacv1.RoleBinding // a ClusterRoleBinding has the same fields
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &b); err != nil {
				t.Fatal(err)
			}
			if who := (rbacv1.Subject{Kind: "ServiceAccount", Name: "kumiki-shadow", Namespace: "kube-system"}); !slices.Equal(b.Subjects, []rbacv1.Subject{who}) {
				t.Errorf("%s binds %+v", o.GetName(), b.Subjects)
			}
			roles = append(roles, b.RoleRef.Kind+"/"+b.RoleRef.Name)
		}
	}
	slices.Sort(roles)
	if !slices.Equal(roles, []string{"ClusterRole/kumiki-shadow", "Role/extension-apiserver-authentication-reader"}) {
		t.Errorf("rights are %v", roles)
	}
	for _, r := range only[rbacv1.ClusterRole](t, all, "ClusterRole").Rules {
		if !slices.Equal(r.Verbs, []string{"get", "list", "watch"}) || slices.Contains(r.Resources, "*") || slices.Contains(r.Resources, "secrets") || len(r.NonResourceURLs) > 0 {
			t.Errorf("a rule is %+v", r)
		}
	}
}

// TestWhatIsDeployedFollows: the overlay goes to a real API server, and the program runs with its command line, its
// configuration and its account, beside a scheduler. It sees what the scheduler binds, lacks no right, tells the report at
// its end, and keeps it in the file that the comment in the overlay names.
// Faults: a kind that the role forgot; a report in a directory that cannot be written.
func TestWhatIsDeployedFollows(t *testing.T) {
	s := &stage{T: t, binary: build(t)}
	cluster := testcluster.Start(t, testcluster.Options{Nodes: 3, NoHeartbeats: true})
	var err error
	if s.rest, err = clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	s.rest.QPS = -1
	s.client = kubernetes.NewForConfigOrDie(s.rest)
	all := overlay(t, "shadow")
	s.apply(all)

	leader := s.start(nil, "scheduler", "--kubeconfig="+cluster.SchedulerKubeconfig, "--secure-port=0", "--leader-elect=false")
	pod := only[appsv1.Deployment](t, all, "Deployment").Spec.Template.Spec
	container, dir := pod.Containers[0], t.TempDir()
	var here []string // path in the container, path on this machine
	for _, m := range container.VolumeMounts {
		here = append(here, m.MountPath+"/", filepath.Join(dir, m.Name)+"/")
		if err := os.Mkdir(filepath.Join(dir, m.Name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range only[corev1.ConfigMap](t, all, "ConfigMap").Data {
		if err := os.WriteFile(filepath.Join(dir, "config", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	here = append(here, fmt.Sprint(container.Ports[0].ContainerPort), port)
	args := []string{"--bind-address=127.0.0.1", "--kubeconfig=" + s.kubeconfigOf("kube-system", pod.ServiceAccountName, dir)}
	for _, a := range container.Args {
		args = append(args, strings.NewReplacer(here...).Replace(a))
	}
	var report bytes.Buffer
	shadow := s.start(&report, append(args[2:], args[:2]...)...)
	shadow.url = "https://127.0.0.1:" + port
	s.answersProbes(shadow, all)

	const pods = 3
	for i := range pods {
		name := fmt.Sprint("web-", i)
		s.pod(name, "")
		s.bound("default", name)
	}
	shadow.end()
	leader.end()
	if text := report.String(); !strings.Contains(text, "Shadow of default-scheduler") || !strings.Contains(text, "agreement                      100.0%") {
		t.Errorf("at its end the shadow says:\n%s", text)
	}
	kept, err := s.kumiki("shadow", "show", filepath.Join(dir, "report", "report.json")).Output()
	if err != nil || string(kept) != report.String() {
		t.Errorf("%v: the file says:\n%s", err, kept)
	}
	for line := range strings.Lines(shadow.log.String()) {
		if strings.Contains(line, "cannot be read") {
			t.Errorf("the account lacks a right: %s", line)
		}
	}
}

// kumiki is the program under the name that the image's entry point has.
func (s *stage) kumiki(args ...string) *exec.Cmd {
	return &exec.Cmd{Path: s.binary, Args: append([]string{"kumiki"}, args...), SysProcAttr: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}}
}

// start runs the program until its end. What it says on standard output goes to out.
func (s *stage) start(out *bytes.Buffer, args ...string) *process {
	s.Helper()
	p := &process{T: s.T, gone: make(chan error, 1), cmd: s.kumiki(args...)}
	p.cmd.Stderr = &p.log
	if out != nil {
		p.cmd.Stdout = out
	}
	if err := p.cmd.Start(); err != nil {
		s.Fatal(err)
	}
	go func() { p.gone <- p.cmd.Wait() }()
	s.Cleanup(p.end)
	return p
}
