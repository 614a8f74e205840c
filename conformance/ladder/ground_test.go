// SPDX-License-Identifier: Apache-2.0

package ladder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kumiki-scheduler/kumiki/internal/e2e/checker"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// patience ends a wait that hangs.
const patience = 60 * time.Second

// manifests are what a platform engineer applies.
const manifests = "../../deploy/kustomize/"

// ground is the cluster under the ladder, its load and its books.
type ground struct {
	*testing.T
	ctx      context.Context
	cluster  *testcluster.Cluster
	programs programs
	rest     *rest.Config
	client   *kubernetes.Clientset
	ledger   *ledger
	history  *checker.History
	load     *load
	dir      string
	// leader has the lease kube-scheduler.
	leader *process
	// running are the schedulers that were started.
	running []*process
	// seen is how many findings of the ledger were judged.
	seen struct{ sold, failed, lost int }
}

// newGround starts the cluster, without a scheduler.
func newGround(t *testing.T) *ground {
	g := &ground{T: t, ctx: t.Context(), dir: t.TempDir()}
	built, err := build(g.ctx)
	g.must(err)
	// Pods that a kubelet would refuse stay: the ledger judges them, and a node that is too full is not tidied up.
	g.cluster = testcluster.Start(t, testcluster.Options{Nodes: 20, NoHeartbeats: true, NoKubeletAdmission: true})
	built.kubectl, err = testcluster.Build(g.ctx, testcluster.Matched, nil)
	g.must(err)
	g.programs = built
	g.rest, err = clientcmd.BuildConfigFromFlags("", g.cluster.Kubeconfig)
	g.must(err)
	g.rest.QPS = -1
	g.client = kubernetes.NewForConfigOrDie(g.rest)
	g.ledger, err = follow(g.ctx, g.client)
	g.must(err)
	g.history = checker.Follow(g.ctx, g.client)
	_, err = g.client.CoreV1().Namespaces().Create(g.ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space}}, metav1.CreateOptions{})
	g.must(err)
	g.eventually("the account of namespace "+space, func() error {
		_, err := g.client.CoreV1().ServiceAccounts(space).Get(g.ctx, "default", metav1.GetOptions{})
		return err
	})
	ctx, end := context.WithCancel(g.ctx)
	g.load = &load{client: g.client, ledger: g.ledger, gone: map[int]bool{}, schedulers: []string{v1.DefaultSchedulerName}}
	made, reaped := make(chan struct{}), make(chan struct{})
	go func() { defer close(made); g.load.run(ctx) }()
	go func() { defer close(reaped); g.load.reap(ctx) }()
	t.Cleanup(func() {
		end()
		<-made
		<-reaped
		g.ledger.stop()
		g.endAll()
	})
	return g
}

// endAll ends what runs, and shows what it said if something is wrong.
func (g *ground) endAll() {
	for _, p := range g.running {
		select {
		case <-p.gone:
		default:
			_ = p.end(syscall.SIGKILL)
		}
		if g.Failed() {
			g.Logf("%s said last:\n%s", p.name, p.log.lines(25))
		}
	}
}

func (g *ground) must(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

// eventually asks until there is no error.
func (g *ground) eventually(what string, ask func() error) {
	g.Helper()
	ctx, cancel := context.WithTimeout(g.ctx, patience)
	defer cancel()
	for {
		err := ask()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			g.Fatalf("%s: %v", what, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// during lets the load go on for a while.
func (g *ground) during(d time.Duration) {
	select {
	case <-g.ctx.Done():
	case <-time.After(d):
	}
}

// run runs a command to its end and returns what it wrote to standard output.
func (g *ground) run(name string, args ...string) string {
	g.Helper()
	out, err := g.try(name, args...)
	if err != nil {
		g.Fatal(err)
	}
	return out
}

func (g *ground) try(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(g.ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, complaints.String())
	}
	return out.String(), nil
}

// kubectl is the one inside the local cluster's program.
func (g *ground) kubectl(args ...string) string {
	g.Helper()
	return g.run(g.programs.kubectl, append([]string{"kubectl", "--kubeconfig=" + g.cluster.Kubeconfig}, args...)...)
}

// configuration writes a scheduler's file: the one in deploy/, with the kubeconfig and, if it has an election, with
// leases that suit a test.
func (g *ground) configuration(overlay, kubeconfig string) string {
	g.Helper()
	text, err := os.ReadFile(manifests + overlay + "/config.yaml")
	g.must(err)
	const election = "  leaderElect: true\n"
	if strings.Contains(string(text), "leaderElect") && strings.Count(string(text), election) != 1 {
		g.Fatalf("the configuration of %s does not elect as the others do:\n%s", overlay, text)
	}
	short := strings.Replace(string(text), election, election+"  leaseDuration: 6s\n  renewDeadline: 5s\n  retryPeriod: 500ms\n", 1)
	path := filepath.Join(g.TempDir(), overlay+".yaml")
	g.must(os.WriteFile(path, []byte(short+"clientConnection:\n  kubeconfig: "+kubeconfig+"\n"), 0o600))
	return path
}

// account writes a kubeconfig for a service account of kube-system.
func (g *ground) account(name string) string {
	g.Helper()
	token := strings.TrimSpace(g.kubectl("create", "token", name, "-n", "kube-system"))
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{Server: g.rest.Host, CertificateAuthorityData: g.rest.CAData, CertificateAuthority: g.rest.CAFile}
	c.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token}
	c.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	c.CurrentContext = "x"
	path := filepath.Join(g.dir, name+".kubeconfig")
	g.must(clientcmd.WriteToFile(*c, path))
	return path
}

// scheduler starts kumiki or kube-scheduler, and waits until it serves.
func (g *ground) scheduler(binary, file, kubeconfig string, more ...string) *process {
	g.Helper()
	args := append([]string{"--config=" + file, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig}, more...)
	name := filepath.Base(binary)
	if binary == g.programs.kumiki {
		args = append([]string{"scheduler"}, args...)
	} else {
		args = append(args, "--cert-dir="+g.TempDir())
	}
	p, err := start(name, binary, args...)
	g.must(err)
	g.running = append(g.running, p)
	g.eventually(name+" serves", func() error { return p.alive(g.ctx) })
	return p
}

// holder is who holds a lease of kube-system.
func (g *ground) holder(lease string) (string, error) {
	l, err := g.client.CoordinationV1().Leases("kube-system").Get(g.ctx, lease, metav1.GetOptions{})
	if err != nil || l.Spec.HolderIdentity == nil {
		return "", err
	}
	return *l.Spec.HolderIdentity, nil
}

// scheduled is how many pods a scheduler says that it has placed.
func (g *ground) scheduled(p *process) int {
	g.Helper()
	n, err := p.metric(g.ctx, g.rest, "scheduler_schedule_attempts_total", `result="scheduled"`)
	g.must(err)
	return int(n)
}

// settle stops the load, and holds the books against the cluster: every pod that was made got a node, once; none went
// without one; none was failed. It returns how many pods there were so far.
func (g *ground) settle() int {
	g.Helper()
	made, err := g.load.off()
	if err != nil {
		g.Fatalf("the load: %v", err)
	}
	g.eventually("every pod of the load on a node", func() error {
		if waiting := g.load.unbound(made); len(waiting) > 0 {
			return fmt.Errorf("%d pods wait, such as %s", len(waiting), waiting[0])
		}
		return nil
	})
	g.ledger.look(func(l *ledger) {
		for _, lost := range l.lost[g.seen.lost:] {
			g.Errorf("pod %s went without a node", lost)
		}
		for _, failed := range l.failed[g.seen.failed:] {
			g.Errorf("pod %s failed", failed)
		}
		g.seen.lost, g.seen.failed = len(l.lost), len(l.failed)
	})
	return made
}

// oversold are the findings since the last look.
func (g *ground) oversold() (found []oversell) {
	g.ledger.look(func(l *ledger) {
		found = append(found, l.sold[g.seen.sold:]...)
		g.seen.sold = len(l.sold)
	})
	return found
}

// nothingOversold is for steps in which one scheduler binds at a time.
func (g *ground) nothingOversold() {
	g.Helper()
	for _, o := range g.oversold() {
		g.Errorf("oversold: %s", o)
	}
}

// account of the whole walk.
func (g *ground) close() {
	g.Helper()
	for _, found := range g.history.Stop() {
		g.Error(found)
	}
	// The scheduler that bound a pod tells so in an event. Two of them for one pod are two that bound it.
	events, err := g.client.EventsV1().Events(space).List(g.ctx, metav1.ListOptions{FieldSelector: "reason=Scheduled"})
	g.must(err)
	told := map[string]int{} // pod -> events
	for _, ev := range events.Items {
		told[ev.Regarding.Name]++
		if told[ev.Regarding.Name] > 1 || ev.Series != nil {
			g.Errorf("two schedulers say that they bound pod %s: %s", ev.Regarding.Name, ev.Note)
		}
	}
	if len(told) == 0 {
		g.Error("no scheduler told about any pod")
	}
}

// refused checks that an attempt failed for lack of a right.
func (g *ground) refused(what string, err error) {
	g.Helper()
	if !apierrors.IsForbidden(err) {
		g.Errorf("%s: got %v, want that it is forbidden", what, err)
	}
}

// ended returns how a process ended, as an exit code.
func (p *process) ended() int {
	var exit *exec.ExitError
	switch {
	case p.exit == nil:
		return 0
	case errors.As(p.exit, &exit):
		return exit.ExitCode()
	}
	return -1
}
