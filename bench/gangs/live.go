// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// player plays a scenario on a real cluster, in real time. Gangs are native pod groups.
type player struct {
	s         Scenario
	client    kubernetes.Interface
	namespace string
	tally     *Tally
	began     time.Time
	due       []event
	seq       int
	bound     map[string]bool // pod -> it was seen bound
	gone      map[string]bool // pod -> it was deleted
	groups    map[string]bool // gang -> its object was made
	batchOf   map[string]int  // pod -> its batch
	err       error
}

// event is an action of the workload.
type event struct {
	at  time.Duration
	seq int
	do  func()
}

// Play runs a scenario for a scheduler that runs already, in a separate namespace, and cleans up afterwards. The
// cluster must be empty otherwise.
func Play(ctx context.Context, client kubernetes.Interface, s Scenario, scheduler, namespace string) (_ Result, err error) {
	p := &player{s: s, client: client, namespace: namespace, bound: map[string]bool{}, gone: map[string]bool{}, groups: map[string]bool{}, batchOf: map[string]int{},
		tally: NewTally(s, scheduler)}
	if _, err := client.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		return Result{}, fmt.Errorf("make namespace %s: %w", namespace, err)
	}
	defer func() { err = errors.Join(err, p.clean(context.WithoutCancel(ctx))) }()
	for i := range s.Nodes {
		if err := p.makeNode(ctx, nodeName(i)); err != nil {
			return Result{}, err
		}
	}
	seen, err := client.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return Result{}, fmt.Errorf("watch pods of %s: %w", namespace, err)
	}
	defer seen.Stop()
	for i, b := range s.Batches {
		p.at(b.At, func() { p.create(ctx, i) })
		if b.Dies > 0 {
			p.at(b.Dies, func() { p.end(ctx, i) })
		}
	}
	if s.Probe > 0 {
		p.at(s.Probe, func() { p.probe(ctx) })
	}
	p.began = time.Now()
	return p.play(ctx, seen.ResultChan())
}

func (p *player) at(t time.Duration, do func()) {
	p.seq++
	e := event{t, p.seq, do}
	i, _ := slices.BinarySearchFunc(p.due, e, func(a, b event) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq)) })
	p.due = slices.Insert(p.due, i, e)
}

func (p *player) play(ctx context.Context, seen <-chan watch.Event) (Result, error) {
	for p.err == nil && !p.tally.Done() {
		now := time.Since(p.began)
		p.tally.At(now)
		if now >= p.s.Until {
			break
		}
		next := p.s.Until
		if len(p.due) > 0 {
			next = min(next, p.due[0].at)
		}
		if next <= now {
			e := p.due[0]
			p.due = p.due[1:]
			e.do()
			continue
		}
		timer := time.NewTimer(next - now)
		select {
		case <-ctx.Done():
			p.err = ctx.Err()
		case <-timer.C:
		case ev, open := <-seen:
			if !open {
				p.err = fmt.Errorf("the watch of pods of %s has ended", p.namespace)
			}
			p.tally.At(time.Since(p.began))
			p.saw(ctx, ev)
		}
		timer.Stop()
	}
	return p.tally.Result(-1).withoutHolds(), p.err
}

func (r Result) withoutHolds() Result {
	r.Held = -1
	return r
}

// saw follows a change of a pod.
func (p *player) saw(ctx context.Context, ev watch.Event) {
	one, is := ev.Object.(*v1.Pod)
	if !is || one.Spec.NodeName == "" || p.bound[one.Name] {
		return
	}
	i, measured := p.batchOf[one.Name]
	if !measured {
		return
	}
	p.bound[one.Name] = true
	if b := p.s.Batches[i]; p.tally.Bound(i) && b.Run > 0 {
		p.at(time.Since(p.began)+b.Run, func() { p.end(ctx, i) })
	}
}

func (p *player) note(err error) {
	if err != nil && p.err == nil && !apierrors.IsNotFound(err) {
		p.err = err
	}
}

func (p *player) makeNode(ctx context.Context, name string) error {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}}}
	n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: *apiresource.NewQuantity(int64(p.s.Cores), apiresource.DecimalSI), v1.ResourcePods: apiresource.MustParse("110"),
		v1.ResourceMemory: apiresource.MustParse("64Gi")}
	n.Status.Capacity = n.Status.Allocatable
	n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
	if _, err := p.client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("make node %s: %w", name, err)
	}
	return nil
}

// create creates the pods of a batch, after the object of their gang.
func (p *player) create(ctx context.Context, i int) {
	b := p.s.Batches[i]
	if b.Gang != "" && !p.groups[b.Gang] {
		p.groups[b.Gang] = true
		g := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: b.Gang}}
		g.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(b.Size)}
		_, err := p.client.SchedulingV1beta1().PodGroups(p.namespace).Create(ctx, g, metav1.CreateOptions{})
		p.note(err)
	}
	for k := range b.Pods {
		one := p.pod(podName(b, k), "1")
		if b.Gang != "" {
			one.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &b.Gang}
		}
		if b.Running {
			one.Spec.NodeName = nodeName(0)
		}
		p.batchOf[one.Name] = i
		p.tally.Came(i)
		_, err := p.client.CoreV1().Pods(p.namespace).Create(ctx, one, metav1.CreateOptions{})
		p.note(err)
	}
}

func podName(b Batch, k int) string { return fmt.Sprintf("%s-%02d", b.Name, k) }

func (p *player) pod(name, cpu string) *v1.Pod {
	no := false
	one := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
	one.Spec.AutomountServiceAccountToken = &no
	one.Spec.Containers = []v1.Container{{Name: "c", Image: "pause", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: apiresource.MustParse(cpu)}}}}
	return one
}

// end deletes the pods of a batch.
func (p *player) end(ctx context.Context, i int) {
	b := p.s.Batches[i]
	for k := range b.Pods {
		if name := podName(b, k); !p.gone[name] {
			p.gone[name] = true
			p.remove(ctx, name)
			if p.bound[name] {
				p.tally.Ended(i)
			}
			p.bound[name] = true // whatever the watch still shows
		}
	}
}

func (p *player) remove(ctx context.Context, name string) {
	now := int64(0)
	p.note(p.client.CoreV1().Pods(p.namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now}))
}

// probe creates a pod without requests, which is deleted after a second.
func (p *player) probe(ctx context.Context) {
	at := time.Since(p.began)
	name := fmt.Sprintf("probe-%d", at/time.Millisecond)
	_, err := p.client.CoreV1().Pods(p.namespace).Create(ctx, p.pod(name, "0"), metav1.CreateOptions{})
	p.note(err)
	p.at(at+time.Second, func() { p.remove(ctx, name) })
	p.at(at+p.s.Probe, func() { p.probe(ctx) })
}

// clean deletes all remaining objects of a scenario.
func (p *player) clean(ctx context.Context) error {
	now := int64(0)
	err := p.client.CoreV1().Pods(p.namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{})
	err = errors.Join(err, p.client.SchedulingV1beta1().PodGroups(p.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	for i := range p.s.Nodes {
		if e := p.client.CoreV1().Nodes().Delete(ctx, nodeName(i), metav1.DeleteOptions{}); !apierrors.IsNotFound(e) {
			err = errors.Join(err, e)
		}
	}
	return err
}
