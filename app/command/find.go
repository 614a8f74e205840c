// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kumiki-scheduler/kumiki/app/command/ask"
)

// finder is the flags by which a command finds the cluster and the scheduler in it.
type finder struct {
	kube     *genericclioptions.ConfigFlags
	lease    string // namespace/name, or empty
	pod      string // namespace/name, or empty
	endpoint string
	// any, ca and insecure are those of commands that work with kube-scheduler too.
	any      bool
	ca       string // file
	insecure bool
}

// addLeaseFlags adds the flags of commands that read and write the lease alone.
func (f *finder) addLeaseFlags(c *cobra.Command, otherwise string) {
	f.kube = genericclioptions.NewConfigFlags(true)
	f.kube.AddFlags(c.Flags())
	c.Flags().StringVar(&f.lease, "scheduler-lease", "",
		"lease of the running scheduler, as namespace/name (default: "+otherwise+")")
}

// addFlags adds the flags of commands that ask the scheduler.
func (f *finder) addFlags(c *cobra.Command) {
	f.addLeaseFlags(c, "kube-scheduler or kumiki in "+ask.Default().Namespace)
	c.Flags().StringVar(&f.pod, "scheduler-pod", "",
		"pod of the running scheduler, as namespace/name, for one with --leader-elect=false")
	c.Flags().StringVar(&f.endpoint, "scheduler-endpoint", "",
		"host:port to connect to instead of the address in the lease, such as a forwarded port")
}

// addAnyFlags adds the flags of commands that work with any scheduler.
func (f *finder) addAnyFlags(c *cobra.Command) {
	f.any = true
	f.addFlags(c)
	c.Flags().Lookup("scheduler-pod").Usage = "pod of the running scheduler, as namespace/name, " +
		"for one without leader election"
	c.Flags().Lookup("scheduler-endpoint").Usage = "host:port to connect to instead of the address in the lease, " +
		"such as a forwarded port; kube-scheduler also needs --scheduler-ca or --scheduler-insecure"
	c.Flags().StringVar(&f.ca, "scheduler-ca", "",
		"file with the certificate of the scheduler at --scheduler-endpoint, or of its authority")
	c.Flags().BoolVar(&f.insecure, "scheduler-insecure", false,
		"do not verify the certificate at --scheduler-endpoint: the process there gets your token")
}

// rest is how the user reaches the API server.
func (f *finder) rest() (*rest.Config, error) {
	cfg, err := f.kube.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	return cfg, nil
}

// namespace is the one that -n names, or that of the kubeconfig's context.
func (f *finder) namespace() (string, error) {
	ns, _, err := f.kube.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("reading the kubeconfig: %w", err)
	}
	return ns, nil
}

// where reads the flags that name the scheduler.
func (f *finder) where() (ask.Where, error) {
	w := ask.Default()
	w.Endpoint, w.Any, w.Insecure = strings.TrimPrefix(f.endpoint, "https://"), f.any, f.insecure
	if (f.ca != "" || f.insecure) && f.endpoint == "" {
		return w, usageError{errors.New("--scheduler-ca and --scheduler-insecure need --scheduler-endpoint")}
	}
	if f.ca != "" {
		ca, err := os.ReadFile(f.ca)
		if err != nil {
			return w, fmt.Errorf("reading --scheduler-ca: %w", err)
		}
		w.CA = ca
	}
	for _, flag := range []struct{ name, value string }{{"lease", f.lease}, {"pod", f.pod}} {
		namespace, name, ok := strings.Cut(flag.value, "/")
		if flag.value != "" && (!ok || namespace == "" || name == "" || strings.Contains(name, "/")) {
			return w, usageError{fmt.Errorf("--scheduler-%s must be namespace/name, got %q", flag.name, flag.value)}
		}
	}
	switch {
	case f.lease != "" && f.pod != "":
		return w, usageError{errors.New("--scheduler-lease and --scheduler-pod exclude each other")}
	case f.pod != "" && f.endpoint != "":
		return w, usageError{errors.New("--scheduler-pod and --scheduler-endpoint exclude each other: the " +
			"certificate of an endpoint is in the lease")}
	case f.lease != "":
		w.Namespace, w.Lease, _ = strings.Cut(f.lease, "/")
	}
	w.Pod = f.pod
	return w, nil
}

// schedulers are the running schedulers that a command may ask.
type schedulers []*ask.Instance

// schedulers finds the running schedulers, those with a profile of a scheduler name first.
func (f *finder) schedulers(ctx context.Context, name string) (schedulers, error) {
	where, err := f.where()
	if err != nil {
		return nil, err
	}
	cfg, err := f.rest()
	if err != nil {
		return nil, err
	}
	return ask.Find(ctx, cfg, where, name)
}

// ask asks one scheduler after the other until one knows the subject. The caller closes nothing.
func (s schedulers) ask(ctx context.Context, question func(*ask.Client) error) error {
	var first error
	for _, instance := range s {
		client, err := instance.Connect(ctx)
		if err == nil {
			err = question(client)
			client.Close()
			if err == nil || !unknown(err) {
				return err
			}
		}
		if first == nil || unknown(first) {
			first = err
		}
	}
	return first
}

// schedulerNameOf returns the scheduler name of a pod; empty if the user may not read the pod, or it does not exist.
func (f *finder) schedulerNameOf(ctx context.Context, namespace, pod string) string {
	cfg, err := f.rest()
	if err != nil || f.lease != "" || f.pod != "" {
		return ""
	}
	api, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return ""
	}
	p, err := api.CoreV1().Pods(namespace).Get(ctx, pod, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	return p.Spec.SchedulerName
}
