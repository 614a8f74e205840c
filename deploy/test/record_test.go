// SPDX-License-Identifier: Apache-2.0

//go:build record

package deploy

import (
	"compress/gzip"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestRecordRun runs kumiki on a local cluster for some minutes, with single pods, gangs and preemption, and writes what Prometheus
// would scrape of the metrics on the dashboard to runFile. It needs the build tag record, because it is a program for
// make dashboard-record and checks nothing.
func TestRecordRun(t *testing.T) {
	c := startCluster(t, 12)
	c.install("kumiki", "{mode: replace, gangs: {annotation: true}}")
	p := c.run("kumiki")
	c.bound("app.kubernetes.io/instance=kumiki", 3)
	get := c.metrics(p)
	w := &workload{cluster: c, until: map[string]int{}}
	w.classes()
	recorded, names, began := map[string][]string{}, dashboardMetrics(t), time.Now()
	end := int(runTime / scrapeInterval)
	ticker := time.NewTicker(scrapeInterval)
	for at := 0; at <= end; at++ {
		<-ticker.C
		for line := range strings.Lines(get()) {
			name, value, found := cutLast(strings.TrimSpace(line))
			if metric, _, _ := strings.Cut(name, "{"); !found || !names[metric] {
				continue
			}
			for len(recorded[name]) < at {
				recorded[name] = append(recorded[name], "_")
			}
			recorded[name] = append(recorded[name], value)
		}
		w.tick(at)
	}
	if took := time.Since(began); took > runTime*11/10 {
		t.Fatalf("the run took %s, so that its scrapes are more than %s apart: this machine is too busy", took, scrapeInterval)
	}
	p.end()
	if err := write(recorded); err != nil {
		t.Fatal(err)
	}
}

// cutLast splits a line of the exposition format into series and value.
func cutLast(line string) (series, value string, found bool) {
	i := strings.LastIndexByte(line, ' ')
	if strings.HasPrefix(line, "#") || i < 0 {
		return "", "", false
	}
	return line[:i], line[i+1:], true
}

// dashboardMetrics are the metrics that the dashboard queries.
func dashboardMetrics(t *testing.T) map[string]bool {
	names := map[string]bool{}
	for name := range served(t) { // order: each for itself
		for _, p := range readDashboard(t).Panels {
			for _, target := range p.Targets {
				if strings.Contains(target.Expr, name+"{") {
					names[name] = true
				}
			}
		}
	}
	return names
}

// metrics returns a function that reads the metrics of the program.
func (c *cluster) metrics(p *process) func() string {
	c.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "prometheus"}}
	if _, err := c.client.CoreV1().ServiceAccounts(namespace).Create(c.Context(), account, metav1.CreateOptions{}); err != nil {
		c.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "prometheus"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "kumiki-metrics-reader"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "prometheus", Namespace: namespace}}}
	if _, err := c.client.RbacV1().ClusterRoleBindings().Create(c.Context(), binding, metav1.CreateOptions{}); err != nil {
		c.Fatal(err)
	}
	token, err := c.client.CoreV1().ServiceAccounts(namespace).CreateToken(c.Context(), "prometheus", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		c.Fatal(err)
	}
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	read := func() (string, error) {
		request, err := http.NewRequestWithContext(c.Context(), http.MethodGet, p.url+"/metrics", nil)
		if err != nil {
			return "", err
		}
		request.Header.Set("Authorization", "Bearer "+token.Status.Token)
		reply, err := client.Do(request)
		if err != nil {
			return "", err
		}
		defer reply.Body.Close()
		text, err := io.ReadAll(reply.Body)
		if err == nil && reply.StatusCode != http.StatusOK {
			err = errors.New(reply.Status)
		}
		return string(text), err
	}
	c.eventually("metrics", func() error { // the role is in force a moment after it is bound
		_, err := read()
		return err
	})
	return func() string {
		text, err := read()
		if err != nil {
			c.Fatalf("%v; the log of kumiki:\n%s", err, p.log.String())
		}
		return text
	}
}

// write stores series in the notation of promtool: a value and how often it follows itself.
func write(recorded map[string][]string) error {
	if err := os.MkdirAll("testdata", 0o755); err != nil {
		return err
	}
	f, err := os.Create(runFile)
	if err != nil {
		return err
	}
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return err
	}
	var names []string
	for name := range recorded { // order: sorted below
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		metric, labels, _ := strings.Cut(strings.TrimSuffix(name, "}"), "{")
		fmt.Fprintf(z, `%s{job="kumiki",instance="a"%s}`, metric, strings.TrimSuffix(","+labels, ","))
		values := recorded[name]
		for i := 0; i < len(values); {
			k := i
			for k < len(values) && values[k] == values[i] {
				k++
			}
			switch n := k - i; {
			case n == 1:
				fmt.Fprintf(z, " %s", values[i])
			case values[i] == "_":
				fmt.Fprintf(z, " _x%d", n)
			default:
				fmt.Fprintf(z, " %sx%d", values[i], n-1)
			}
			i = k
		}
		fmt.Fprintln(z)
	}
	if err := z.Close(); err != nil {
		return err
	}
	return f.Close()
}

// workload creates pods and deletes them again.
type workload struct {
	*cluster
	until map[string]int // pod -> the second in which it is deleted
	made  int
}

func (w *workload) classes() {
	for name, value := range map[string]int32{"high": 1000} { // order: each for itself
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
		if _, err := w.client.SchedulingV1().PriorityClasses().Create(w.Context(), class, metav1.CreateOptions{}); err != nil {
			w.Fatal(err)
		}
	}
	w.eventually("the account of namespace default", func() error {
		_, err := w.client.CoreV1().ServiceAccounts("default").Get(w.Context(), "default", metav1.GetOptions{})
		return err
	})
}

// tick is one second: 96 processors, on which single pods use about 36, gangs of 8 about 40, and from the 60th second on
// longer ones the rest.
func (w *workload) tick(at int) {
	for name, end := range w.until { // order: each for itself
		if end <= at {
			err := w.client.CoreV1().Pods("default").Delete(w.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
			if err != nil && !apierrors.IsNotFound(err) {
				w.Fatal(err)
			}
			delete(w.until, name)
		}
	}
	w.pods("web", 3, 1, "", "", at+12)
	if at%5 == 0 {
		w.gang(8, 8, "", at+25)
	}
	switch {
	case at >= 60 && at < 150 && at%4 == 0:
		w.pods("batch", 8, 1, "", "", at+60)
	case at == 30:
		w.gang(5, 8, "", 200) // incomplete
	case at == 70:
		w.gang(40, 40, "", 190) // blocked
	case at == 100:
		w.gang(300, 300, "", 170) // never fits
	}
	if at >= 90 && at < 210 && at%3 == 0 {
		w.pods("urgent", 1, 4, "high", "", at+12)
	}
	if at >= 120 && at < 200 && at%6 == 1 {
		w.pods("cancelled", 1, 4, "high", "", at+1)
	}
}

// gang creates pods of a gang that declares its size.
func (w *workload) gang(pods, size int, class string, until int) {
	w.made++
	name := fmt.Sprint("gang-", w.made)
	w.pods(name, pods, 1, class, fmt.Sprintf("%s %d", name, size), until)
}

func (w *workload) pods(prefix string, count, cpus int, class, gang string, until int) {
	for range count {
		w.made++
		name := fmt.Sprint(prefix, "-", w.made)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{PriorityClassName: class, Containers: []corev1.Container{{
			Name: "c", Image: "none", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(cpus), resource.DecimalSI)}},
		}}}}
		if group, size, is := strings.Cut(gang, " "); is {
			pod.Annotations = map[string]string{"pod_group": group, "pod_group_size": size}
		}
		if _, err := w.client.CoreV1().Pods("default").Create(w.Context(), pod, metav1.CreateOptions{}); err != nil {
			w.Fatal(err)
		}
		w.until[name] = until
	}
}
