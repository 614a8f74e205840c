// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"github.com/kumiki-scheduler/kumiki/app/command/ask"
)

// finder is the flags by which a command finds the cluster and the scheduler in it.
type finder struct {
	kube     *genericclioptions.ConfigFlags
	lease    string // namespace/name
	endpoint string
}

func (f *finder) addFlags(c *cobra.Command) {
	f.kube = genericclioptions.NewConfigFlags(true)
	f.kube.AddFlags(c.Flags())
	d := ask.Default()
	c.Flags().StringVar(&f.lease, "scheduler-lease", d.Namespace+"/"+d.Lease,
		"lease of the running scheduler, as namespace/name")
	c.Flags().StringVar(&f.endpoint, "scheduler-endpoint", "",
		"host:port to connect to instead of the address in the lease, such as a forwarded port")
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
	namespace, name, ok := strings.Cut(f.lease, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return ask.Where{}, usageError{fmt.Errorf("--scheduler-lease must be namespace/name, got %q", f.lease)}
	}
	return ask.Where{Namespace: namespace, Lease: name, Endpoint: f.endpoint}, nil
}

// client finds the running scheduler.
func (f *finder) client(ctx context.Context) (*ask.Client, error) {
	where, err := f.where()
	if err != nil {
		return nil, err
	}
	cfg, err := f.rest()
	if err != nil {
		return nil, err
	}
	return ask.Find(ctx, cfg, where)
}
