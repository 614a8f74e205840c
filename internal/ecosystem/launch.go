// SPDX-License-Identifier: Apache-2.0

package ecosystem

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// patience bounds how long a component may take to become ready, its build excepted.
const patience = 2 * time.Minute

// Launch builds and installs a component in a cluster, starts it, and returns when it answers. Kubeconfig is an
// administrator's; dir is an empty directory of the component's own; output gets what the component prints.
func Launch(ctx context.Context, c Component, kubeconfig, dir string, output io.Writer) (*Process, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	binary, err := c.Build(ctx, root)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	v, err := c.values(ctx, root, dir)
	if err != nil {
		return nil, err
	}
	bundle, err := writeCertificate(v.CertDir)
	if err != nil {
		return nil, err
	}
	client, err := NewClient(kubeconfig)
	if err != nil {
		return nil, err
	}
	objects, paths, err := c.objects(v, bundle)
	if err != nil {
		return nil, err
	}
	// Webhooks are called as soon as they exist, so they are installed when the component answers.
	hooks, err := client.install(ctx, objects)
	if err != nil {
		return nil, err
	}
	if c.ServiceAccount == "" {
		v.Kubeconfig = kubeconfig
	} else if err := client.writeKubeconfig(ctx, c.Namespace, c.ServiceAccount, v.Kubeconfig); err != nil {
		return nil, err
	}
	cmd, err := c.command(binary, v)
	if err != nil {
		return nil, err
	}
	p, err := Spawn(cmd, output)
	if err != nil {
		return nil, err
	}
	if err := c.ready(ctx, p, v, bundle, paths); err != nil {
		p.Stop()
		return nil, fmt.Errorf("%s is not ready: %w\n%s", c.Name, err, p.tail())
	}
	if _, err := client.installAll(ctx, hooks); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}

// Start runs a component beside a test's cluster and ends it with the test. It fails the test if the component ends
// earlier.
func Start(t testcluster.TB, c Component, kubeconfig, dir string) *Process {
	t.Helper()
	log, err := os.Create(filepath.Join(dir, c.Name+".log"))
	if err != nil {
		t.Fatalf("%v", err)
	}
	p, err := Launch(context.WithoutCancel(t.Context()), c, kubeconfig, dir, log)
	if err != nil {
		log.Close()
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		if err := p.alive(); err != nil {
			t.Errorf("%v", err)
		}
		p.Stop()
		if t.Failed() {
			t.Logf("the end of the output of %s:\n%s", c.Name, p.tail())
		}
		log.Close()
	})
	return p
}

// values chooses directories and ports.
func (c *Component) values(ctx context.Context, root, dir string) (*Values, error) {
	v := &Values{Dir: dir, Kubeconfig: filepath.Join(dir, "kubeconfig"), ConfigFile: filepath.Join(dir, "config.yaml"),
		CertDir: filepath.Join(dir, "tmp", "k8s-webhook-server", "serving-certs")}
	var err error
	if v.ModuleDir, err = c.moduleDir(ctx, root); err != nil {
		return nil, err
	}
	for _, port := range []*int{&v.WebhookPort, &v.HealthPort, &v.MetricsPort} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		// Closed at the return, so that the ports differ.
		defer listener.Close()
		*port = listener.Addr().(*net.TCPAddr).Port
	}
	return v, nil
}

// install installs objects except webhook configurations, which it returns.
func (c *Client) install(ctx context.Context, objects []*unstructured.Unstructured) (
	[]*unstructured.Unstructured, error) {
	var now, later []*unstructured.Unstructured
	for _, o := range objects {
		if o.GetKind() == validatingKind || o.GetKind() == mutatingKind {
			later = append(later, o)
		} else {
			now = append(now, o)
		}
	}
	definitions, err := c.installAll(ctx, now)
	if err != nil {
		return nil, err
	}
	for _, definition := range definitions {
		if err := c.established(ctx, definition); err != nil {
			return nil, err
		}
	}
	return later, nil
}

// installAll applies objects and returns the resource definitions among them.
func (c *Client) installAll(ctx context.Context, objects []*unstructured.Unstructured) (
	[]*unstructured.Unstructured, error) {
	var definitions []*unstructured.Unstructured
	for _, o := range objects {
		if err := c.applyUntil(ctx, o); err != nil {
			return nil, err
		}
		if o.GetKind() == definitionKind {
			definitions = append(definitions, o)
		}
	}
	return definitions, nil
}

// command prepares the process, and writes its configuration.
func (c *Component) command(binary string, v *Values) (*exec.Cmd, error) {
	config, err := v.fill(c.Config)
	if err != nil {
		return nil, err
	}
	if config != "" {
		if err := os.WriteFile(v.ConfigFile, []byte(config), 0o600); err != nil {
			return nil, err
		}
	}
	cmd := exec.Command(binary)
	cmd.Dir = v.Dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+v.Kubeconfig, "TMPDIR="+filepath.Join(v.Dir, "tmp"))
	for _, text := range c.Args {
		arg, err := v.fill(text)
		if err != nil {
			return nil, err
		}
		cmd.Args = append(cmd.Args, arg)
	}
	for _, text := range c.Env {
		variable, err := v.fill(text)
		if err != nil {
			return nil, err
		}
		cmd.Env = append(cmd.Env, variable)
	}
	return cmd, nil
}

// fill executes a template.
func (v *Values) fill(text string) (string, error) {
	t, err := template.New("").Option("missingkey=error").Parse(text)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	err = t.Execute(&out, v)
	return out.String(), err
}

// ready waits until the component answers: its health endpoint, and every webhook.
func (c *Component) ready(ctx context.Context, p *Process, v *Values, bundle []byte, paths []string) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	web := &http.Client{Timeout: 5 * time.Second, Transport: transport}
	defer web.CloseIdleConnections()
	var addresses []string
	if c.Ready != "" {
		addresses = append(addresses, fmt.Sprintf("http://127.0.0.1:%d%s", v.HealthPort, c.Ready))
	}
	for _, path := range paths {
		addresses = append(addresses, fmt.Sprintf("https://127.0.0.1:%d%s", v.WebhookPort, path))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-p.ended:
			cancel(p.alive())
		case <-ctx.Done():
		}
	}()
	for _, address := range addresses {
		err := Until(ctx, func(ctx context.Context) error { return answers(ctx, web, address) })
		if err != nil {
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
	return nil
}

// answers returns an error unless there is a handler at an address, or a health endpoint that says yes. A webhook
// rejects an empty request in its own way; that of a path without a handler is 404.
func answers(ctx context.Context, web *http.Client, address string) error {
	webhook := strings.HasPrefix(address, "https:")
	method := http.MethodGet
	if webhook {
		method = http.MethodPost
	}
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader([]byte("{}")))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	reply, err := web.Do(request)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if webhook && reply.StatusCode == http.StatusNotFound || !webhook && reply.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", address, reply.Status)
	}
	return nil
}
