// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/host/framework"
)

// together is an extender that answers no call before a number of calls have been under way at once, and keeps all
// nodes.
type together struct {
	*httptest.Server
	mu     sync.Mutex
	want   int
	now    int
	most   int
	enough chan struct{} // closed when want calls are under way
}

func newTogether(t *testing.T, want int) *together {
	x := &together{want: want, enough: make(chan struct{})}
	x.Server = httptest.NewServer(x)
	t.Cleanup(x.Close)
	return x
}

func (x *together) count(by int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.now += by
	if x.now > x.most {
		if x.most = x.now; x.most == x.want {
			close(x.enough)
		}
	}
}

func (x *together) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var question extenderv1.ExtenderArgs
	if err := json.NewDecoder(r.Body).Decode(&question); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	x.count(1)
	defer x.count(-1)
	select {
	case <-x.enough:
	case <-r.Context().Done():
		return
	}
	if err := json.NewEncoder(w).Encode(extenderv1.ExtenderFilterResult{NodeNames: question.NodeNames}); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// TestLocalPlanners: with four local planners, four calls of a slow extender are under way at once; all pods that fit are
// bound, and no node is overcommitted. One loop would wait for the answer to the first call.
func TestLocalPlanners(t *testing.T) {
	t.Parallel()
	const nodes, cores = 10, 4
	x := newTogether(t, 4)
	api := newAPIServer(t)
	api.serve(t, "1.37", false)
	for i := range nodes {
		api.node(t, fmt.Sprintf("n%d", i))
	}
	for i := range nodes*cores + 3 {
		api.pod(t, fmt.Sprintf("p%d", i), "")
	}
	c, err := config.Parse([]byte(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
extenders: [{urlPrefix: "` + x.URL + `", filterVerb: filter, nodeCacheCapable: true, httpTimeout: 50s}]
profiles:
- pluginConfig: [{name: Kumiki, args: {instances: {mode: Shared, local: 4}}}]
`))
	if err != nil {
		t.Fatal(err)
	}
	r := startWith(t, api, func(o *Options) { o.Config = c })
	on := map[string]int{} // node -> pods
	eventually(t, r, "all that fit are bound", func() bool {
		clear(on)
		bound := 0
		for i := range nodes*cores + 3 {
			if node := api.nodeOf(fmt.Sprintf("p%d", i)); node != "" {
				on[node]++
				bound++
			}
		}
		return bound == nodes*cores
	})
	for node, pods := range on {
		if pods > cores {
			t.Errorf("node %s with %d cores has %d pods of one core", node, cores, pods)
		}
	}
	if x.most > 4+1 { // the planners, and the loop, which decides what planners give back
		t.Errorf("%d calls at once, by 4 planners", x.most)
	}
}

// TestLocalPlannersWithoutHostedPlugins: with a plugin of kube-scheduler's framework, mode Shared is an error of the
// file, and of a scheduler whose configuration was not read from one.
func TestLocalPlannersWithoutHostedPlugins(t *testing.T) {
	t.Parallel()
	p, err := Plugins{}.WithFramework(framework.Registration{Name: "Gates", Undeclared: true,
		Factory: func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return gates{}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	file := func(mode string) []byte {
		return []byte(fileWith("  plugins: {multiPoint: {enabled: [{name: Gates}]}}\n" +
			"  pluginConfig: [{name: Kumiki, args: {instances: {mode: " + mode + "}}}]\n"))
	}
	if _, err := p.ParseConfig(file("Shared")); err == nil || !strings.Contains(err.Error(),
		"profiles[0].pluginConfig[0].args.instances: mode Shared is not allowed with plugin Gates") {
		t.Errorf("the file: %v", err)
	}
	c, err := p.ParseConfig(file("Off"))
	if err != nil {
		t.Fatal(err)
	}
	c.Kumiki.Instances = config.Instances{Mode: config.Shared, Local: 2, Lending: config.LendAuto}
	o := DefaultOptions()
	o.Config, o.Plugins, o.Rest = c, p, &rest.Config{Host: "localhost:0"}
	o.Serve.Secure = nil
	if _, err := NewScheduler(t.Context(), o); !errors.Is(err, errHostedPlanners) {
		t.Errorf("the scheduler: %v, want %v", err, errHostedPlanners)
	}
}
