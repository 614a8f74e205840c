// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	componentmetrics "k8s.io/component-base/metrics"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube"
	"github.com/kumiki-scheduler/kumiki/kube/intake"
	"github.com/kumiki-scheduler/kumiki/kube/metrics"
)

// extenderTakes is the environment variable that makes the test binary an extender that answers after this time.
const extenderTakes = "KUMIKI_TEST_EXTENDER_TAKES"

// TestMain is the extender process of BenchmarkLocalPlanners, if asked.
func TestMain(m *testing.M) {
	if takes, err := time.ParseDuration(os.Getenv(extenderTakes)); err == nil {
		serveExtender(takes)
	}
	os.Exit(m.Run())
}

// serveExtender writes its URL and keeps all nodes of each call, until its parent ends it.
func serveExtender(takes time.Duration) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println("http://" + l.Addr().String())
	panic(http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var question extenderv1.ExtenderArgs
		if err := json.NewDecoder(r.Body).Decode(&question); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		time.Sleep(takes)
		json.NewEncoder(w).Encode(extenderv1.ExtenderFilterResult{NodeNames: question.NodeNames})
	})))
}

// extenderProcess starts an extender and returns its URL.
func extenderProcess(b *testing.B, takes time.Duration) string {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprint(extenderTakes, "=", takes))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(url)
}

// instant is an API server that takes each bind at once, and shows it to the watch.
type instant struct {
	loop  *kube.Loop
	binds chan engine.Bind
}

func (x *instant) Bind(b engine.Bind)            { x.binds <- b }
func (*instant) Recall(engine.Recall)            {}
func (*instant) Prepare(engine.Prepare)          {}
func (*instant) Release(engine.Release)          {}
func (*instant) Evict(engine.Evict)              {}
func (*instant) SetGangStatus(engine.GangStatus) {}
func (*instant) SetCondition(engine.Condition)   {}
func (*instant) Nominate(engine.Nominate)        {}
func (*instant) WriteEvent(engine.WriteEvent)    {}

// run answers binds until so many pods are bound, and returns when each was.
func (x *instant) run(b *testing.B, pods cache.ReflectorStore, all map[string]*v1.Pod) (bound []time.Time) {
	for len(bound) < len(all) {
		select {
		case bind := <-x.binds:
			x.loop.Answer(engine.BindDone{Pod: bind.Pod, Node: bind.Node, Outcome: engine.Bound})
			p := all[bind.Pod.Name].DeepCopy()
			p.Spec.NodeName, p.ResourceVersion = bind.Node, "9"
			pods.Update(p)
			bound = append(bound, time.Now())
		case <-time.After(20 * time.Second):
			b.Fatalf("%d of %d pods are bound, and none for 20 s", len(bound), len(all))
		}
	}
	return bound
}

// BenchmarkLocalPlanners measures how many pods a second are bound with an extender process that answers after 5 ms,
// with one loop (planners=0) and with local planners: the scheduling loop, the planners, and the HTTP calls are those
// of the scheduler. There is no API server: a bind is answered at once. The rate is that between the first tenth and
// the last tenth of the pods. The goals are 3.6 times the rate of one loop with 4 planners, and 7 times with 8.
func BenchmarkLocalPlanners(b *testing.B) {
	for _, nodes := range []int{100, 1000} {
		for _, planners := range []int{0, 1, 4, 8} {
			b.Run(fmt.Sprintf("nodes=%d/planners=%d", nodes, planners), func(b *testing.B) {
				url, rate := extenderProcess(b, 5*time.Millisecond), 0.0
				for b.Loop() {
					rate += rateWith(b, url, nodes, planners)
				}
				b.ReportMetric(rate/float64(b.N), "pods/s")
			})
		}
	}
}

func rateWith(b *testing.B, url string, nodes, planners int) float64 {
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	mode := "{mode: Off}"
	if planners > 0 {
		mode = fmt.Sprintf("{mode: Shared, local: %d}", planners)
	}
	c, err := config.Parse([]byte(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
extenders: [{urlPrefix: "` + url + `", filterVerb: filter, nodeCacheCapable: true, httpTimeout: 50s}]
profiles: [{pluginConfig: [{name: Kumiki, args: {instances: ` + mode + `}}]}]
`))
	if err != nil {
		b.Fatal(err)
	}
	s := &Scheduler{opts: Options{Config: c, UnschedulableTimeout: 5 * time.Minute}}
	cfg, err := s.opts.Plugins.EngineConfig(c)
	if err != nil {
		b.Fatal(err)
	}
	inbox := intake.NewInbox(func(object string, problem any) { b.Errorf("%s: %v", object, problem) })
	s.clock = inbox.Clock()
	_, objects, err := extend(ctx, c.Extenders, inbox, nil, &cfg)
	if err != nil {
		b.Fatal(err)
	}
	share(c, &cfg)
	s.engine = engine.New(cfg)
	x := &instant{binds: make(chan engine.Bind, 1<<16)}
	runner := s.planners(ctx, objects)
	x.loop = kube.NewLoop(kube.LoopConfig{Engine: s.engine, Inbox: inbox, Executor: x, Planners: runner,
		Metrics: metrics.New(componentmetrics.NewKubeRegistry()), SchedulerNames: []string{"default-scheduler"}})
	all := map[string]*v1.Pod{}
	inbox.NodeStore().Replace(nodesFor(nodes), "1")
	var list []any
	for i := range 300 * max(1, planners) {
		name := fmt.Sprintf("p%d", i)
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name),
			ResourceVersion: "5"}, Spec: v1.PodSpec{SchedulerName: "default-scheduler"}}
		all[name], list = p, append(list, p)
	}
	inbox.PodStore().Replace(list, "1")
	ended := make(chan struct{}, 2)
	go func() { x.loop.Run(ctx); ended <- struct{}{} }()
	go func() {
		if runner != nil {
			runner.Run(ctx)
		}
		ended <- struct{}{}
	}()
	<-x.loop.Synced()
	x.loop.Decide(true)
	bound := x.run(b, inbox.PodStore(), all)
	stop()
	<-ended
	<-ended
	from, to := len(bound)/10, len(bound)*9/10
	return float64(to-from) / bound[to].Sub(bound[from]).Seconds()
}

func nodesFor(n int) []any {
	amounts := v1.ResourceList{v1.ResourceCPU: apiresource.MustParse("64"), v1.ResourcePods: apiresource.MustParse("250")}
	return slices.Collect(func(yield func(any) bool) {
		for i := range n {
			yield(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%05d", i), ResourceVersion: "1"},
				Status: v1.NodeStatus{Allocatable: amounts}})
		}
	})
}
