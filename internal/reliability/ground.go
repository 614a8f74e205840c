// SPDX-License-Identifier: Apache-2.0

package reliability

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kumiki-scheduler/kumiki/internal/e2e/checker"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// caseLabel is the label of the nodes of a case; its pods select it.
const caseLabel = "reliability.kumiki.dev/case"

// Ground is the environment of one case.
type Ground struct {
	// Name is the case's namespace, and the beginning of the names of its nodes.
	Name    string
	Program Program
	// Client, Dynamic and Rest are of an admin, without a rate limit, and go to the API server directly.
	Client  *kubernetes.Clientset
	Dynamic dynamic.Interface
	Rest    *rest.Config
	Cluster *testcluster.Cluster
	History *checker.History
	// Scheduler is the one that runs over all cases; nil in a case that has its own.
	Scheduler *Scheduler

	dir string // for logs and configurations

	mu       sync.Mutex
	launched []*Scheduler
	cleanups []func(context.Context) error
	shrunk   map[string]bool // node -> it may hold more than it offers, because the case made it smaller
	placed   map[string]bool // pod -> the case demanded that it be placed
	unplaced map[string]bool // pod -> and it was not
	nodes    []string
}

// Launch starts a scheduler for a case that has its own. It ends with the case.
func (g *Ground) Launch(ctx context.Context, l Launch) (*Scheduler, error) {
	g.mu.Lock()
	if l.Name == "" {
		l.Name = fmt.Sprintf("%s-%d", g.Program.Name, len(g.launched))
	}
	g.mu.Unlock()
	if l.Kubeconfig == "" {
		l.Kubeconfig = g.Cluster.SchedulerKubeconfig
	}
	dir := filepath.Join(g.dir, g.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, unjudged{err}
	}
	s, err := newScheduler(g.Program, l, g.Cluster.Kubeconfig, dir)
	if err == nil {
		err = s.Start()
	}
	if err != nil {
		return nil, unjudged{err}
	}
	g.mu.Lock()
	g.launched = append(g.launched, s)
	g.mu.Unlock()
	if l.DontWait {
		return s, nil
	}
	return s, s.WaitReady(ctx)
}

// Schedulers returns all schedulers that run on this ground.
func (g *Ground) Schedulers() []*Scheduler {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := slices.Clone(g.launched)
	if g.Scheduler != nil {
		all = append(all, g.Scheduler)
	}
	return all
}

// Cleanup registers a function that is called after the case, the last one first, even if the case failed.
func (g *Ground) Cleanup(f func(context.Context) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cleanups = append(g.cleanups, f)
}

// MayHoldTooMuch records that the case made a node smaller than the requests of its pods.
func (g *Ground) MayHoldTooMuch(node string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shrunk[node] = true
}

// Node is a node of the case that is ready: four cores, 8Gi, 110 pods. It is not created yet.
func (g *Ground) Node(name string, change ...func(*v1.Node)) *v1.Node {
	capacity := v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("4"), v1.ResourceMemory: resource.MustParse("8Gi"),
		v1.ResourceEphemeralStorage: resource.MustParse("100Gi"), v1.ResourcePods: resource.MustParse("110"),
	}
	now := metav1.Now()
	n := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: g.Name + "-" + name, Labels: map[string]string{
			caseLabel: g.Name, v1.LabelHostname: g.Name + "-" + name, v1.LabelArchStable: "amd64", v1.LabelOSStable: "linux",
		}},
		Status: v1.NodeStatus{Capacity: capacity, Allocatable: capacity.DeepCopy(), Conditions: []v1.NodeCondition{
			{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: now, LastTransitionTime: now},
		}},
	}
	for _, c := range change {
		c(n)
	}
	return n
}

// Nodes creates so many nodes, called GROUND-0 and so on, and waits until they have no taint that the control plane
// puts on new nodes.
func (g *Ground) Nodes(ctx context.Context, count int, change ...func(*v1.Node)) error {
	all := make([]*v1.Node, count)
	for i := range all {
		all[i] = g.Node(fmt.Sprint(i), change...)
	}
	return g.CreateNodes(ctx, all...)
}

// CreateNodes creates nodes and waits as Nodes does.
func (g *Ground) CreateNodes(ctx context.Context, nodes ...*v1.Node) error {
	err := inParallel(len(nodes), func(i int) error {
		name := nodes[i].Name
		_, err := g.Client.CoreV1().Nodes().Create(ctx, nodes[i], metav1.CreateOptions{})
		if err != nil {
			return Unjudged("create node %s: %w", name, err)
		}
		g.mu.Lock()
		g.nodes = append(g.nodes, name)
		g.mu.Unlock()
		return eventually(ctx, "node "+name+" is usable", func() string {
			n, err := g.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{ResourceVersion: "0"})
			if err != nil {
				return err.Error()
			}
			for _, t := range n.Spec.Taints {
				if t.Key == v1.TaintNodeNotReady {
					return "it has the taint " + t.Key
				}
			}
			return ""
		})
	})
	return err
}

// PatchNode changes a node: body is a strategic merge patch; sub is "status" or empty.
func (g *Ground) PatchNode(ctx context.Context, name, body, sub string) error {
	var subs []string
	if sub != "" {
		subs = []string{sub}
	}
	if _, err := g.Client.CoreV1().Nodes().Patch(ctx, g.Name+"-"+name, types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{}, subs...); err != nil {
		return Unjudged("patch node %s: %w", name, err)
	}
	return nil
}

// Pod is a pod of the case that asks for 100m and selects the nodes of the case.
func (g *Ground) Pod(name string, change ...func(*v1.Pod)) *v1.Pod {
	return newPod(g.Name, name, g.Name, change...)
}

func newPod(namespace, name, nodes string, change ...func(*v1.Pod)) *v1.Pod {
	no, now := false, int64(0)
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": namespace}},
		Spec: v1.PodSpec{
			NodeSelector: map[string]string{caseLabel: nodes}, AutomountServiceAccountToken: &no, TerminationGracePeriodSeconds: &now,
			Containers: []v1.Container{{Name: "c", Image: "registry.example/app:1", Resources: v1.ResourceRequirements{
				Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m")},
			}}},
		},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

// asks sets what the pod's container requests: name, quantity, name, quantity and so on. "" takes a request away.
func asks(list ...string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		requests := p.Spec.Containers[0].Resources.Requests
		for i := 0; i < len(list); i += 2 {
			if delete(requests, v1.ResourceName(list[i])); list[i+1] != "" {
				requests[v1.ResourceName(list[i])] = resource.MustParse(list[i+1])
			}
		}
	}
}

// Create creates pods, some at a time. An error is of the API server, which did not accept them.
func (g *Ground) Create(ctx context.Context, pods ...*v1.Pod) error {
	return inParallel(len(pods), func(i int) error {
		if _, err := g.Client.CoreV1().Pods(pods[i].Namespace).Create(ctx, pods[i], metav1.CreateOptions{}); err != nil {
			return Unjudged("create pod %s: %w", pods[i].Name, err)
		}
		return nil
	})
}

// Offer creates a pod and returns the API server's status code. That it refuses the pod is no error.
func (g *Ground) Offer(ctx context.Context, p *v1.Pod) (int, string, error) {
	code := 0
	text, err := g.Client.CoreV1().RESTClient().Post().Namespace(p.Namespace).Resource("pods").Body(p).Do(ctx).StatusCode(&code).Raw()
	if code == 0 {
		return 0, "", Unjudged("offer pod %s: %w", p.Name, err)
	}
	return code, string(text), nil
}

// Play creates pods and waits for verdicts.
func (g *Ground) Play(ctx context.Context, pods []*v1.Pod, want map[string]string) error {
	if err := g.Create(ctx, pods...); err != nil {
		return err
	}
	return g.Wants(ctx, want)
}

// Delete deletes pods at once.
func (g *Ground) Delete(ctx context.Context, names ...string) error {
	now := int64(0)
	return inParallel(len(names), func(i int) error {
		err := g.Client.CoreV1().Pods(g.Name).Delete(ctx, names[i], metav1.DeleteOptions{GracePeriodSeconds: &now})
		if err != nil && !apierrors.IsNotFound(err) {
			return Unjudged("delete pod %s: %w", names[i], err)
		}
		return nil
	})
}

// Post sends JSON as it is to a path of the API server and returns the status code. Only a request that got no
// answer is an error.
func (g *Ground) Post(ctx context.Context, path, body string) (int, string, error) {
	code := 0
	text, err := g.Client.CoreV1().RESTClient().Post().AbsPath(path).SetHeader("Content-Type", "application/json").
		Body([]byte(body)).Do(ctx).StatusCode(&code).Raw()
	if code == 0 {
		return 0, "", Unjudged("post to %s: %w", path, err)
	}
	return code, string(text), nil
}

// inParallel calls f for 0 to n-1, sixteen at a time, and joins the errors.
func inParallel(n int, f func(int) error) error {
	failed := make([]error, n)
	var running sync.WaitGroup
	free := make(chan struct{}, 16)
	for i := range n {
		free <- struct{}{}
		running.Go(func() {
			defer func() { <-free }()
			failed[i] = f(i)
		})
	}
	running.Wait()
	return errors.Join(failed...)
}

// open makes the namespace, and waits until pods can be created in it.
func (g *Ground) open(ctx context.Context) error {
	space := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: g.Name, Labels: map[string]string{"case": g.Name}}}
	return openNamespace(ctx, g.Client, space)
}

func openNamespace(ctx context.Context, client kubernetes.Interface, space *v1.Namespace) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if _, err := client.CoreV1().Namespaces().Create(ctx, space, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return Unjudged("create namespace: %w", err)
	}
	return eventually(ctx, "the namespace has its service account", func() string {
		if _, err := client.CoreV1().ServiceAccounts(space.Name).Get(ctx, "default", metav1.GetOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
}

// close deletes the objects of the case.
func (g *Ground) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 60*time.Second)
	defer cancel()
	var failed []error
	for _, f := range slices.Backward(g.cleanups) {
		failed = append(failed, f(ctx))
	}
	for _, s := range g.launched {
		s.Close()
	}
	failed = append(failed, eventually(ctx, "the pods of "+g.Name+" are gone", func() string { return g.removePods(ctx) }))
	failed = append(failed, inParallel(len(g.nodes), func(i int) error {
		if err := g.Client.CoreV1().Nodes().Delete(ctx, g.nodes[i], metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		return nil
	}))
	if err := g.Client.CoreV1().Namespaces().Delete(ctx, g.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// removePods deletes the pods of the case and returns which still exist.
func (g *Ground) removePods(ctx context.Context) string {
	api := g.Client.CoreV1().Pods(g.Name)
	list, err := api.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	now := int64(0)
	err = inParallel(len(list.Items), func(i int) error {
		p := &list.Items[i]
		if len(p.Finalizers) > 0 {
			_, err := api.Patch(ctx, p.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			return err
		}
		return api.Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	})
	if len(list.Items) == 0 {
		return ""
	}
	return fmt.Sprintf("%d are there: %v", len(list.Items), err)
}

// node is the name of a node of this case in short form.
func (g *Ground) short(node string) string { return strings.TrimPrefix(node, g.Name+"-") }
