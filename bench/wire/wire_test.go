// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/bench/testbed"
)

// process is the stand-in's side of the protocol, in this process.
type process struct {
	in      io.WriteCloser
	answers *json.Decoder
	hello   hello
	client  *kubernetes.Clientset
	ended   chan error
}

func startProcess(t *testing.T, l load) *process {
	t.Helper()
	l.dir = t.TempDir()
	in, tell := io.Pipe()
	read, out := io.Pipe()
	p := &process{in: tell, answers: json.NewDecoder(read), ended: make(chan error, 1)}
	go func() {
		err := serve(t.Context(), l, in, out)
		out.Close()
		p.ended <- err
	}()
	p.answer(t, &p.hello)
	cfg, err := clientcmd.BuildConfigFromFlags("", p.hello.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	p.client = kubernetes.NewForConfigOrDie(cfg)
	return p
}

func (p *process) answer(t *testing.T, to any) {
	t.Helper()
	if err := p.answers.Decode(to); err != nil {
		t.Fatal(err)
	}
}

func (p *process) tell(t *testing.T, command string) {
	t.Helper()
	if _, err := fmt.Fprintln(p.in, command); err != nil {
		t.Fatal(err)
	}
}

// bind binds a pod and writes its event, as a scheduler does.
func (p *process) bind(ctx context.Context, pod *corev1.Pod, node string) error {
	err := p.client.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = p.client.EventsV1().Events(pod.Namespace).Create(ctx, &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, Reason: "Scheduled"}, metav1.CreateOptions{})
	return err
}

// TestAMeasurement creates pods when it is told to, and reports their binds when all have come, with their events.
func TestAMeasurement(t *testing.T) {
	const pods = 20
	p := startProcess(t, load{nodes: 2, pods: pods, rate: 2000, patience: time.Minute})
	if p.hello.PodBytes < 1000 {
		t.Errorf("a pod has %d bytes, which is not a pod of a service", p.hello.PodBytes)
	}
	watch, err := p.client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	p.tell(t, cmdCreate)
	for bound := 0; bound < pods; {
		pod := (<-watch.ResultChan()).Object.(*corev1.Pod)
		if pod.Spec.NodeName != "" {
			continue
		}
		if err := p.bind(t.Context(), pod, fmt.Sprintf("node-%06d", bound%2)); err != nil {
			t.Fatal(err)
		}
		bound++
	}
	var d done
	p.answer(t, &d)
	p.tell(t, cmdReport)
	var r served
	p.answer(t, &r)
	if d.Error != "" || len(r.Problems) > 0 {
		t.Errorf("%q, problems %q", d.Error, r.Problems)
	}
	if r.Binds != pods || r.Events["Scheduled"] != pods {
		t.Errorf("%d binds and events %v, want %d of each", r.Binds, r.Events, pods)
	}
	if r.P50 <= 0 || r.P99 < r.P50 || r.BindSeconds <= 0 || r.EventSeconds < r.BindSeconds || r.CreateSeconds <= 0 {
		t.Errorf("times %+v", r)
	}
	p.in.Close()
	if err := <-p.ended; err != nil {
		t.Error(err)
	}
}

// TestAMeasurementWithoutAScheduler ends after the patience and says what is missing.
func TestAMeasurementWithoutAScheduler(t *testing.T) {
	p := startProcess(t, load{nodes: 1, pods: 3, patience: 50 * time.Millisecond})
	p.tell(t, cmdCreate)
	var d done
	p.answer(t, &d)
	p.tell(t, cmdReport)
	var r served
	p.answer(t, &r)
	if !strings.Contains(d.Error, "0 of 3 pods were bound") ||
		!slices.Equal(r.Problems, []string{"3 of 3 pods are not bound"}) {
		t.Errorf("%q, problems %q", d.Error, r.Problems)
	}
	if !math.IsNaN(float64(r.P50)) {
		t.Errorf("P50 without binds is %v", r.P50)
	}
	p.tell(t, "stop")
	if err := <-p.ended; err == nil || !strings.Contains(err.Error(), `"stop" is unknown`) {
		t.Errorf("an unknown command: %v", err)
	}
}

// TestWrongFlags are refused before anything is started.
func TestWrongFlags(t *testing.T) {
	for args, want := range map[string]string{
		"-o yaml":                       `output "yaml" is unknown`,
		"--rate -1":                     "rate -1",
		"--pods 41 --nodes 1":           "41 pods do not fit 1 nodes",
		"--pods 0":                      "at least 1",
		"--rounds 0":                    "runs must be at least 1",
		"--scheduler none":              `"none"`,
		"--scheduler null --timeout 0s": "timeout 0s",
	} {
		cmd := newCommand()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(append([]string{"--scheduler=null"}, strings.Fields(args)...))
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		err := cmd.Execute()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}

// TestAProcessIsPutOnACore: what is started has that core alone, and this program has all of its own again.
func TestAProcessIsPutOnACore(t *testing.T) {
	before, err := coresOf()
	if err != nil {
		t.Fatal(err)
	}
	var within []int
	if err := onCore(before[len(before)-1], func() (err error) { within, err = coresOf(); return err }); err != nil {
		t.Fatal(err)
	}
	after, err := coresOf()
	if err != nil || !slices.Equal(after, before) || !slices.Equal(within, before[len(before)-1:]) {
		t.Errorf("cores %v before, %v within, %v after: %v", before, within, after, err)
	}
}

// TestTheLimitIsNamed by the core that is full. Fault: standinNeverLimits.
func TestTheLimitIsNamed(t *testing.T) {
	for _, c := range []struct {
		idle, standinIdle float64
		want              string
	}{{0.05, 0.5, limitScheduler}, {0.5, 0.05, limitStandin}, {0.05, 0.01, limitStandin}, {0.5, 0.5, limitNone}} {
		trial := Trial{Idle: c.idle, StandinIdle: c.standinIdle}
		if got := trial.limit(); got != c.want {
			t.Errorf("%v and %v idle: limit %q, want %q", c.idle, c.standinIdle, got, c.want)
		}
	}
}

// TestTheTable has a row for each scheduler and a line for each problem, which is an error.
func TestTheTable(t *testing.T) {
	r := Report{Nodes: 10, Pods: 100, PodBytes: 2000, Cores: [2]int{0, 1}, Siblings: true}
	for round := 1; round <= 3; round++ {
		for i, name := range []string{report.Kumiki, report.Null} {
			trial := Trial{Scheduler: name, Round: round, Pods: 100, CPU: float64(round) / 10,
				StandinCPU: 0.1, StandinIdle: 0.5,
				served: served{Binds: 100, BindSeconds: float64(i+1) / 10, Events: map[string]int{"Scheduled": 100}}}
			if name == report.Null && round == 2 {
				trial.Problems = []string{"1 binds were refused"}
			}
			r.Trials = append(r.Trials, trial)
		}
	}
	r.summarize([]string{report.Kumiki, report.Null})
	var out bytes.Buffer
	if err := r.write(&out, "table"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"100 pods of 2000 bytes on 10 nodes, all created at once", "threads of one physical core",
		"2000 (1000..3000)", "null, round 2: 1 binds were refused"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, &out)
		}
	}
	if err := r.verdict(); err == nil || err.Error() != "1 of 6 runs left problems" {
		t.Errorf("verdict %v", err)
	}
	if err := (&Report{Rows: []Row{{}}}).verdict(); err != nil {
		t.Errorf("verdict without problems: %v", err)
	}
	var again Report
	out.Reset()
	if err := r.write(&out, "json"); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), &again); err != nil || len(again.Trials) != 6 || again.Trials[0].Binds != 100 {
		t.Errorf("read back: %v, %+v", err, again.Trials)
	}
}

// TestOneCore is refused with the reason.
func TestOneCore(t *testing.T) {
	all, err := coresOf()
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Options: testbed.Options{Nodes: 1, Pods: 1, Rounds: 1, Schedulers: []string{report.Null},
		QPS: 1, Burst: 1, Timeout: time.Second}}
	err = onCore(all[0], func() error { _, err := Run(t.Context(), o); return err })
	if err == nil || !strings.Contains(err.Error(), "need a core each, and this process may use 1") {
		t.Errorf("on one core: %v", err)
	}
}
