// SPDX-License-Identifier: Apache-2.0

package quality

import (
	"cmp"
	"container/heap"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/sim/bound"
)

// JobGPU is the resource of whole GPUs, and GPUsPerNode what a node has.
const (
	JobGPU      v1.ResourceName = "nvidia.com/gpu"
	GPUsPerNode                 = 8
)

// Job is a job of Philly: a pod, or a gang of equal pods.
type Job struct {
	Arrival, Work float64 // seconds; the first arrival is at 0
	Pods          int
	Each          int64 // GPUs of a pod
}

// gpus returns the GPUs of a job.
func (j *Job) gpus() int64 { return int64(j.Pods) * j.Each }

// ReadJobs reads jobs in the form of shared traces of Philly, sorted by arrival. vc chooses a virtual cluster, empty
// for all. A job of more GPUs than a pod may have is a gang of pods with as many as that. Rows without a duration, and
// those of which GPUs would be left over, are skipped and counted.
func ReadJobs(in io.Reader, vc string, most int64) (jobs []Job, skipped int, err error) {
	rows, err := readRows(in, "arrival_s", "gpus", "duration_v100_s", "vc")
	if err != nil {
		return nil, 0, fmt.Errorf("reading Philly's jobs: %w", err)
	}
	for i, row := range rows {
		if vc != "" && row[3] != vc {
			continue
		}
		v, err := wholes(row[:3])
		if err != nil {
			return nil, 0, fmt.Errorf("reading Philly's jobs: row %d: %w", i+1, err)
		}
		gpus := v[1]
		if row[2] == "" || gpus < 1 || gpus > most && gpus%most != 0 {
			skipped++
			continue
		}
		each := min(gpus, most)
		jobs = append(jobs, Job{float64(v[0]), float64(max(v[2], 1)), int(gpus / each), each})
	}
	slices.SortStableFunc(jobs, func(a, b Job) int { return cmp.Compare(a.Arrival, b.Arrival) })
	if len(jobs) > 0 {
		first := jobs[0].Arrival
		for i := range jobs {
			jobs[i].Arrival -= first
		}
	}
	return jobs, skipped, nil
}

// JobResult is what became of jobs, in seconds.
type JobResult struct {
	Jobs, Finished         int
	MeanWait, P99Wait      float64
	MeanCompletion, P99End float64
	// Partial counts the times that some, but not all pods of a gang got a node by one decision.
	Partial int
	// Hold is the sum over pods of the time that they had a node while their gang was not complete.
	Hold float64
}

// result returns the figures of the jobs that ended. Times are by job; NaN for never.
func result(jobs []Job, started, ended []float64) *JobResult {
	r := &JobResult{Jobs: len(jobs)}
	var waits, completions []float64
	for i := range jobs {
		if !math.IsNaN(ended[i]) {
			r.Finished++
			waits = append(waits, started[i]-jobs[i].Arrival)
			completions = append(completions, ended[i]-jobs[i].Arrival)
		}
	}
	r.MeanWait, r.P99Wait = meanAndP99(waits)
	r.MeanCompletion, r.P99End = meanAndP99(completions)
	return r
}

// meanAndP99 returns the mean and the 99th percentile by nearest rank, 0 for nothing. It sorts the list.
func meanAndP99(list []float64) (mean, p99 float64) {
	if len(list) == 0 {
		return 0, 0
	}
	slices.Sort(list)
	for _, v := range list {
		mean += v / float64(len(list))
	}
	return mean, list[(len(list)*99+99)/100-1]
}

// LeastCompletion returns bound B7: no schedule on so many nodes has a lower mean completion time.
func LeastCompletion(jobs []Job, nodes int) float64 {
	var list []bound.Job
	for i := range jobs {
		list = append(list, bound.Job{Release: jobs[i].Arrival, Work: jobs[i].Work, Need: []int64{jobs[i].gpus()}})
	}
	return bound.MeanCompletion(list, []int64{int64(nodes) * GPUsPerNode})
}

// JobScheduler decides about jobs; their numbers are indexes.
type JobScheduler interface {
	Submit(i int, j *Job)
	// Settle returns the jobs that start now.
	Settle() (started []int, err error)
	End(i int)
}

// RunJobs runs jobs on a scheduler whose decisions take no time.
func RunJobs(jobs []Job, s JobScheduler) (*JobResult, error) {
	started, ended := make([]float64, len(jobs)), make([]float64, len(jobs))
	for i := range jobs {
		started[i], ended[i] = math.NaN(), math.NaN()
	}
	var running endings
	for next := 0; next < len(jobs) || len(running) > 0; {
		now := math.Inf(1)
		if next < len(jobs) {
			now = jobs[next].Arrival
		}
		if len(running) > 0 {
			now = min(now, running[0].at)
		}
		for len(running) > 0 && running[0].at <= now {
			heap.Pop(&running).(ending).end()
		}
		for ; next < len(jobs) && jobs[next].Arrival <= now; next++ {
			s.Submit(next, &jobs[next])
		}
		list, err := s.Settle()
		if err != nil {
			return nil, err
		}
		for _, i := range list {
			started[i], ended[i] = now, now+jobs[i].Work
			heap.Push(&running, ending{at: ended[i], end: func() { s.End(i) }})
		}
	}
	return result(jobs, started, ended), nil
}

// FIFO starts jobs strictly in the order of their arrival: the first that does not fit blocks the others. A pod goes to
// the node with the least free GPUs that are enough.
type FIFO struct {
	free  []int64 // by node
	queue []int
	jobs  map[int]*Job  // number -> job that waits or runs
	on    map[int][]int // number -> nodes of its pods
}

// NewFIFO returns it with empty nodes.
func NewFIFO(nodes int) *FIFO {
	return &FIFO{free: slices.Repeat([]int64{GPUsPerNode}, nodes), jobs: map[int]*Job{}, on: map[int][]int{}}
}

// Submit adds a job to the end of the queue.
func (f *FIFO) Submit(i int, j *Job) { f.queue, f.jobs[i] = append(f.queue, i), j }

// Settle starts jobs until one does not fit.
func (f *FIFO) Settle() (started []int, err error) {
	for len(f.queue) > 0 && f.start(f.queue[0]) {
		started = append(started, f.queue[0])
		f.queue = f.queue[1:]
	}
	return started, nil
}

func (f *FIFO) start(i int) bool {
	j := f.jobs[i]
	for range j.Pods {
		node := -1
		for n, free := range f.free {
			if free >= j.Each && (node < 0 || free < f.free[node]) {
				node = n
			}
		}
		if node < 0 {
			f.release(i)
			return false
		}
		f.free[node] -= j.Each
		f.on[i] = append(f.on[i], node)
	}
	return true
}

func (f *FIFO) release(i int) {
	for _, n := range f.on[i] {
		f.free[n] += f.jobs[i].Each
	}
	delete(f.on, i)
}

// End frees the GPUs of a job.
func (f *FIFO) End(i int) {
	f.release(i)
	delete(f.jobs, i)
}

// RemoteJobs has a Remote decide about jobs. A job of one pod is no gang.
type RemoteJobs struct {
	*Remote
	templates map[int64]*cluster.Pod // GPUs of a pod -> template
	waiting   map[int]*remoteJob     // number -> job that has not started
	// Partial counts the times that some, but not all pods of a gang were bound when the scheduler had settled.
	Partial int
}

type remoteJob struct {
	pods, bound int
}

// NewRemoteJobs starts a cluster.
func NewRemoteJobs(r *Remote, nodes int, seed int64) *RemoteJobs {
	r.Start(StartRequest{Seed: seed, Nodes: JobNodes(nodes)})
	return &RemoteJobs{Remote: r, templates: map[int64]*cluster.Pod{}, waiting: map[int]*remoteJob{}}
}

// JobNodes returns nodes with 8 GPUs.
func JobNodes(count int) (nodes []*v1.Node) {
	for i := range count {
		name := fmt.Sprintf("node-%03d", i)
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name),
			Labels: map[string]string{v1.LabelHostname: name}}}
		n.Status.Allocatable = v1.ResourceList{JobGPU: *apiresource.NewQuantity(GPUsPerNode, apiresource.DecimalSI),
			v1.ResourcePods: *apiresource.NewQuantity(110, apiresource.DecimalSI)}
		nodes = append(nodes, n)
	}
	return nodes
}

// jobPod returns a pod with so many GPUs.
func jobPod(gpus int64) *v1.Pod {
	return podOf(v1.ResourceList{JobGPU: *apiresource.NewQuantity(gpus, apiresource.DecimalSI)})
}

// Submit creates the pods of a job.
func (r *RemoteJobs) Submit(i int, j *Job) {
	t := r.templates[j.Each]
	if t == nil {
		t = r.Template(jobPod(j.Each))
		r.templates[j.Each] = t
	}
	r.waiting[i] = &remoteJob{pods: j.Pods}
	r.Remote.Submit(t, jobName(i), j.Pods)
}

func jobName(i int) string { return fmt.Sprint("job-", i) }

// Settle returns the jobs all of whose pods are bound.
func (r *RemoteJobs) Settle() (started []int, err error) {
	touched := map[int]bool{}            // number -> some of its pods were bound
	for pod := range r.Remote.Settle() { // order: each pod counts by itself
		var i int
		if _, err := fmt.Sscanf(strings.TrimPrefix(pod, "job-"), "%d", &i); err != nil {
			return nil, fmt.Errorf("pod %s: %w", pod, err)
		}
		r.waiting[i].bound++
		touched[i] = true
	}
	for i := range touched { // order: sorted below
		if j := r.waiting[i]; j.bound < j.pods {
			r.Partial++
			continue
		}
		delete(r.waiting, i)
		started = append(started, i)
	}
	slices.Sort(started)
	return started, r.Err()
}

// End deletes the pods of a job.
func (r *RemoteJobs) End(i int) { r.Remote.End(jobName(i)) }
