// SPDX-License-Identifier: Apache-2.0

package ladder

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kumiki-scheduler/kumiki/record"
)

// TestTheLadder walks docs/migration.md: a cluster that kube-scheduler runs is looked at, shared, handed over and
// handed back, with pods coming and going all the time. What is checked at each step stands at the step.
func TestTheLadder(t *testing.T) {
	g := newGround(t)
	g.leader = g.scheduler(g.programs.kubeScheduler, g.configuration("base", g.cluster.SchedulerKubeconfig), g.cluster.SchedulerKubeconfig)
	for _, rung := range []struct {
		name string
		do   func() string
	}{
		{"0 kube-scheduler runs the cluster", g.theyRun},
		{"1 look from outside", g.look},
		{"2 shadow", g.shadow},
		{"3 canary", g.canary},
		{"4 swap", func() string { return g.handOver(g.programs.kumiki, syscall.SIGTERM) }},
		{"4 pause and resume", g.pause},
		{"5 roll back", func() string { return g.handOver(g.programs.kubeScheduler, syscall.SIGTERM) }},
		{"4 swap, the leader being killed", func() string { return g.handOver(g.programs.kumiki, syscall.SIGKILL) }},
		{"5 roll back, the leader being killed", func() string { return g.handOver(g.programs.kubeScheduler, syscall.SIGKILL) }},
	} {
		began := time.Now()
		said := rung.do()
		t.Logf("%-38s %5.1fs  %s", rung.name, time.Since(began).Seconds(), said)
		if t.Failed() {
			t.Fatalf("the walk ends at step %s", rung.name)
		}
	}
	g.close()
}

// theyRun makes sure that the load is one that kube-scheduler carries, so that what goes wrong later is not the load.
func (g *ground) theyRun() string {
	g.load.on(v1.DefaultSchedulerName)
	g.during(5 * time.Second)
	made := g.settle()
	g.nothingOversold()
	return fmt.Sprintf("%d pods", made)
}

// secrets must not be in a recorded cluster snapshot.
var secrets = []string{"word-in-a-secret", "word-in-env", "word-in-a-command", "word-in-an-annotation"}

// look explains a waiting pod, with the rights of a user who may read everything but secrets, and records a snapshot.
// Faults: a verdict that differs from kube-scheduler's; a snapshot that needs more rights, or that contains secrets.
func (g *ground) look() string {
	g.load.on(v1.DefaultSchedulerName)
	pod := testPod("stuck", v1.DefaultSchedulerName, "9")
	pod.Spec.NodeSelector = map[string]string{v1.LabelTopologyZone: "zone-a"}
	pod.Annotations = map[string]string{"example.com/note": secrets[3]}
	c := &pod.Spec.Containers[0]
	c.Env, c.Command, c.Args = []v1.EnvVar{{Name: "PASSWORD", Value: secrets[1]}}, []string{"/app", secrets[2]}, []string{secrets[2]}
	_, err := g.client.CoreV1().Pods(space).Create(g.ctx, pod, metav1.CreateOptions{})
	g.must(err)
	_, err = g.client.CoreV1().Secrets(space).Create(g.ctx, &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"},
		StringData: map[string]string{"key": secrets[0]}}, metav1.CreateOptions{})
	g.must(err)
	var theirs string
	g.eventually("kube-scheduler's word on the pod", func() error {
		got, err := g.client.CoreV1().Pods(space).Get(g.ctx, "stuck", metav1.GetOptions{})
		if err == nil {
			theirs = whyItWaits(got)
		}
		if err == nil && !strings.Contains(theirs, "Unschedulable") {
			err = fmt.Errorf("condition: %s", theirs)
		}
		return err
	})

	viewer := "--kubeconfig=" + g.cluster.ViewerKubeconfig
	g.mayOnlyRead(g.cluster.ViewerKubeconfig)
	reasons := g.judge(theirs, "why", "pod/stuck", "-n", space, "--offline", viewer, "-o", "json")
	file := filepath.Join(g.dir, "snapshot.tape")
	g.run(g.programs.kumiki, "capture", "--to", file, viewer)
	g.judge(theirs, "why", "pod/stuck", "-n", space, "--from", file, "-o", "json")
	snapshot, err := os.ReadFile(file)
	g.must(err)
	if !strings.Contains(string(snapshot), "stuck") {
		g.Error("the snapshot does not contain the pod as searchable text")
	}
	for _, word := range secrets {
		if strings.Contains(string(snapshot), word) {
			g.Errorf("the snapshot contains the %s", word)
		}
	}
	g.must(g.client.CoreV1().Pods(space).Delete(g.ctx, "stuck", metav1.DeleteOptions{}))
	g.eventually("the pod gone", func() (err error) {
		g.ledger.look(func(l *ledger) {
			if n := len(l.lost); n != 1 || l.lost[0] != space+"/stuck" {
				err = fmt.Errorf("lost: %v", l.lost)
			}
			g.seen.lost = len(l.lost) // this one was meant to
		})
		return err
	})
	made := g.settle()
	g.nothingOversold()
	return fmt.Sprintf("%d pods; both say: %s; snapshot of %d bytes without secrets", made, reasons, len(snapshot))
}

// mayOnlyRead makes sure that the account of a step proves something.
func (g *ground) mayOnlyRead(kubeconfig string) {
	g.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	g.must(err)
	viewer := kubernetes.NewForConfigOrDie(cfg)
	_, err = viewer.CoreV1().Secrets(space).List(g.ctx, metav1.ListOptions{})
	g.refused("listing secrets", err)
	g.refused("deleting a pod", viewer.CoreV1().Pods(space).Delete(g.ctx, "stuck", metav1.DeleteOptions{}))
	g.refused("binding a pod", viewer.CoreV1().Pods(space).Bind(g.ctx, &v1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "stuck"},
		Target: v1.ObjectReference{Kind: "Node", Name: "node-0000"}}, metav1.CreateOptions{}))
}

// judge asks kumiki, and finds each of its reasons, with its number of nodes, in kube-scheduler's own message.
func (g *ground) judge(theirs string, args ...string) string {
	g.Helper()
	var report struct {
		Fit struct {
			Nodes, Feasible int
			Reasons         []struct {
				Reason string
				Nodes  int
			}
		}
	}
	g.must(json.Unmarshal([]byte(g.run(g.programs.kumiki, args...)), &report))
	if f := report.Fit; f.Nodes != g.cluster.Nodes || f.Feasible != 0 || len(f.Reasons) != 2 {
		g.Errorf("kumiki %s: %+v", strings.Join(args, " "), f)
	}
	var said []string
	for _, r := range report.Fit.Reasons {
		part := fmt.Sprintf("%d %s", r.Nodes, r.Reason)
		if said = append(said, part); !strings.Contains(theirs, part) {
			g.Errorf("kumiki says %q, kube-scheduler says %q", part, theirs)
		}
	}
	return strings.Join(said, ", ")
}

// shadow lets kumiki follow kube-scheduler, with what deploy/kustomize/shadow gives it and nothing more, first
// under load and then with one pod at a time, when both certainly look at the same cluster. Faults: a pick that the
// other's filters do not allow; scores that differ, as then the other's node is not among the best; a shadow that
// needs a right to write.
func (g *ground) shadow() string {
	file := filepath.Join(g.dir, "shadow.json")
	g.kubectl("apply", "-k", manifests+"shadow")
	reader := g.account("kumiki-shadow")
	g.mayOnlyRead(reader)
	follower := g.scheduler(g.programs.kumiki, g.configuration("shadow", reader), reader, "--shadow="+v1.DefaultSchedulerName, "--shadow-report="+file)
	g.load.on(v1.DefaultSchedulerName)
	g.during(4 * time.Second)
	made := g.settle()
	g.nothingOversold()
	g.oneByOne(10)
	g.must(follower.end(syscall.SIGTERM))
	g.kubectl("delete", "-k", manifests+"shadow", "--wait=false")
	if code := follower.ended(); code != 0 {
		g.Errorf("the shadow ended with exit code %d", code)
	}
	if table := follower.log.String(); !strings.Contains(table, v1.DefaultSchedulerName) {
		g.Errorf("the shadow prints no report at its end: %s", follower.log.lines(20))
	}
	var r record.ShadowReport
	g.must(json.Unmarshal([]byte(g.run(g.programs.kumiki, "shadow", "show", file, "-o", "json")), &r))
	if r.Pods.Judged < 50 || r.Quiet.Pods == 0 || r.Pods.Unjudged != 0 {
		g.Errorf("too little was judged: %+v, of them quiet %d", r.Pods, r.Quiet.Pods)
	}
	if r.RejectedByUs.Pods != 0 || r.RefusedByThem.Pods != 0 || r.Agreement.Rejected != 0 {
		g.Errorf("of no opinion on what fits: rejected by kumiki %+v, refused by kube-scheduler %+v", r.RejectedByUs, r.RefusedByThem)
	}
	if r.Quiet.Share != 1 {
		g.Errorf("they looked at the same cluster and picked differently: %+v\nexamples: %+v", r.Quiet, r.Examples)
	}
	return fmt.Sprintf("%d pods; %d judged, agreed on %.1f %%; on all of %d with nothing else going on; no pick that either may not make",
		made, r.Pods.Judged, 100*r.Agreement.Share, r.Quiet.Pods)
}

// oneByOne makes pods with a pause between them, after the load is gone.
func (g *ground) oneByOne(pods int) {
	g.Helper()
	g.eventually("the pods of the load gone", func() (err error) {
		g.ledger.look(func(l *ledger) {
			for node, on := range l.on {
				for _, p := range on {
					if p.Namespace == space {
						err = fmt.Errorf("%s is on %s", p.Name, node)
					}
				}
			}
		})
		return err
	})
	for n := range pods {
		name := fmt.Sprintf("single-%02d", n)
		_, err := g.client.CoreV1().Pods(space).Create(g.ctx, testPod(name, v1.DefaultSchedulerName, "1"), metav1.CreateOptions{})
		g.must(err)
		g.during(200 * time.Millisecond)
	}
	g.eventually("single pods on nodes", func() (err error) {
		g.ledger.look(func(l *ledger) {
			for n := range pods {
				if name := fmt.Sprintf("%s/single-%02d", space, n); l.bound[name].IsZero() {
					err = fmt.Errorf("%s waits: %s", name, l.waits[name])
				}
			}
		})
		return err
	})
	for n := range pods {
		g.must(g.client.CoreV1().Pods(space).Delete(g.ctx, fmt.Sprintf("single-%02d", n), metav1.DeleteOptions{}))
	}
}

// canary runs kumiki beside kube-scheduler, with what deploy/kustomize/canary gives it and nothing more. First both
// get pods in turn; then more than fit, so that both need the last capacity of each node. Faults: a scheduler that
// touches the other's pods; one that uses capacity although it could have seen that it was taken.
func (g *ground) canary() string {
	theirs := g.leader
	g.kubectl("apply", "-k", manifests+"canary")
	kubeconfig := g.account("kumiki")
	ours := g.scheduler(g.programs.kumiki, g.configuration("canary", kubeconfig), kubeconfig)
	g.eventually("kumiki has its lease", func() error {
		holder, err := g.holder("kumiki")
		if err == nil && holder == "" {
			err = fmt.Errorf("nobody holds it")
		}
		return err
	})
	before, others := g.load.made, g.scheduled(theirs)
	g.load.on(v1.DefaultSchedulerName, "kumiki")
	g.during(6 * time.Second)
	made := g.settle()
	own := g.scheduled(ours)
	others = g.scheduled(theirs) - others
	// A few may have been decided twice, when the other was quicker.
	if half := (made - before) / 2; min(own, others) < half-1 || max(own, others) > half+half/10+1 {
		g.Errorf("of %d pods, half of them its own, kumiki scheduled %d, and kube-scheduler %d", made-before, own, others)
	}
	g.squeeze()
	us, them, widest := 0, 0, time.Duration(0)
	for _, o := range g.oversold() {
		switch {
		case o.by != "kumiki":
			them++
		case o.blameless():
			us, widest = us+1, max(widest, o.beside)
		default:
			g.Errorf("kumiki could have known: %s", o)
		}
	}
	seen, err := ours.metric(g.ctx, g.rest, "kumiki_foreign_binds_rechecked_total")
	g.must(err)
	recalled, err := ours.metric(g.ctx, g.rest, "kumiki_foreign_conflicts_total", `result="recalled"`)
	g.must(err)
	late, err := ours.metric(g.ctx, g.rest, "kumiki_foreign_conflicts_total", `result="too_late"`)
	g.must(err)
	if seen == 0 {
		g.Error("kumiki looked again at no foreign bind")
	}
	g.must(ours.end(syscall.SIGTERM))
	g.kubectl("delete", "-k", manifests+"canary", "--wait=false")
	return fmt.Sprintf("%d pods by kumiki, %d by kube-scheduler; then both wanted the last room of every node: oversold %d times by a bind of kube-scheduler, %d times by one of kumiki, all within %s of the other's; kumiki looked again at %.0f foreign binds, took back %.0f of its own, was too late with %.0f",
		own, others, them, us, widest.Round(time.Millisecond), seen, recalled, late)
}

// squeeze asks both schedulers for more than there is, and takes it away again.
func (g *ground) squeeze() {
	const pods = 200 // of one core each, for 160 cores
	for n := range pods {
		pod := testPod(fmt.Sprintf("squeeze-%03d", n), []string{v1.DefaultSchedulerName, "kumiki"}[n%2], "1")
		pod.Labels = map[string]string{"app": "squeeze"}
		_, err := g.client.CoreV1().Pods(space).Create(g.ctx, pod, metav1.CreateOptions{})
		g.must(err)
	}
	g.eventually("the last room is taken", func() (err error) {
		g.ledger.look(func(l *ledger) {
			for n := range pods {
				name := fmt.Sprintf("%s/squeeze-%03d", space, n)
				_, bound := l.bound[name]
				if !bound && !strings.Contains(l.waits[name], "Insufficient cpu") {
					err = fmt.Errorf("pod %s: %s", name, l.waits[name])
				}
			}
		})
		return err
	})
	now := int64(0)
	g.must(g.client.CoreV1().Pods(space).DeleteCollection(g.ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{LabelSelector: "app=squeeze"}))
	g.eventually("the room is free again", func() (err error) {
		g.ledger.look(func(l *ledger) {
			for name := range l.waits {
				if strings.Contains(name, "/squeeze-") {
					err = fmt.Errorf("%s is still there", name)
				}
			}
			for _, on := range l.on {
				for _, p := range on {
					if p.Labels["app"] == "squeeze" {
						err = fmt.Errorf("%s is still there", p.Name)
					}
				}
			}
			g.seen.lost = len(l.lost) // those without a node were meant to go
		})
		return err
	})
}

// handOver starts a standby, ends the leader under load and waits until the standby leads. Both have one file and
// one account. Faults: a take-over that decides on an old list; binds of the old leader that still land; a standby
// that does not notice; an exit code that makes a service manager believe in a crash.
func (g *ground) handOver(next string, how syscall.Signal) string {
	g.load.on(v1.DefaultSchedulerName, "kumiki")
	file := g.configuration("replace", g.cluster.SchedulerKubeconfig)
	standby := g.scheduler(next, file, g.cluster.SchedulerKubeconfig)
	g.during(3 * time.Second)
	before, err := g.holder("kube-scheduler")
	g.must(err)
	began, old := time.Now(), g.leader
	g.must(old.end(how))
	g.leads(standby, before)
	g.during(2 * time.Second)
	made := g.settle()
	g.nothingOversold()
	end := "killed"
	if how == syscall.SIGTERM {
		end = "ended"
		if code := old.ended(); code != 0 {
			g.Errorf("told to end, %s ended with exit code %d", old.name, code)
		}
	}
	return fmt.Sprintf("%d pods; %s was %s, %s leads: %.1fs without a bind", made, old.name, end, standby.name, g.ledger.longestPause(began).Seconds())
}

// leads waits until the lease has changed hands.
func (g *ground) leads(p *process, before string) {
	g.Helper()
	g.eventually(p.name+" leads", func() error {
		holder, err := g.holder("kube-scheduler")
		if err == nil && (holder == "" || holder == before) {
			err = fmt.Errorf("held by %q", holder)
		}
		return err
	})
	g.leader = p
}

// pause stops the binds of a leading kumiki without stopping the load; it is killed meanwhile, and the next one
// must not bind either. Faults: a pause that only the process knows; one that is answered before the last bind has
// come back; one that makes the process look ill.
func (g *ground) pause() string {
	g.load.on(v1.DefaultSchedulerName, "kumiki")
	g.during(time.Second)
	admin := "--kubeconfig=" + g.cluster.Kubeconfig
	g.run(g.programs.kumiki, "pause", "--reason", "walking the ladder", admin)
	held := g.nothingIsBound()
	if _, err := g.leader.get(g.ctx, g.rest, "/readyz"); err != nil {
		g.Errorf("paused, it is not ready: %v", err)
	}
	if why := g.run(g.programs.kumiki, "why", "pod/"+podName(g.load.newest()), "-n", space, admin); !strings.Contains(why, "walking the ladder") {
		g.Errorf("kumiki why does not tell about the pause:\n%s", why)
	}

	before, err := g.holder("kube-scheduler")
	g.must(err)
	next := g.scheduler(g.programs.kumiki, g.configuration("replace", g.cluster.SchedulerKubeconfig), g.cluster.SchedulerKubeconfig)
	g.must(g.leader.end(syscall.SIGKILL))
	g.leads(next, before)
	held += g.nothingIsBound()
	g.run(g.programs.kumiki, "resume", admin)
	made := g.settle()
	g.nothingOversold()
	return fmt.Sprintf("%d pods; %d of them came in the 4s that were watched of a pause, and a restart in it, and got no node before its end", made, held)
}

// nothingIsBound watches for a while, and returns how many pods came meanwhile.
func (g *ground) nothingIsBound() int {
	g.Helper()
	bound := func() (n int) {
		g.ledger.look(func(l *ledger) { n = len(l.binds) })
		return n
	}
	g.eventually("what was bound before has come to the ledger", func() error {
		list, err := g.client.CoreV1().Pods(space).List(g.ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		g.ledger.look(func(l *ledger) {
			for _, p := range list.Items {
				if p.Spec.NodeName != "" && l.bound[space+"/"+p.Name].IsZero() {
					err = fmt.Errorf("pod %s is on a node", p.Name)
				}
			}
		})
		return err
	})
	n, made := bound(), g.load.newest()
	g.during(2 * time.Second)
	if now := bound(); now != n {
		g.Errorf("%d pods were bound during the pause", now-n)
	}
	return g.load.newest() - made
}
