// SPDX-License-Identifier: Apache-2.0

package roles

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"

	"github.com/kumiki-scheduler/kumiki/localcluster/controllers"
)

// The roles, in the order in which they are started. They are stopped in the
// opposite order.
const (
	Etcd        = "etcd"
	APIServer   = "apiserver"
	Controllers = "controllers"
	Nodes       = "nodes"
)

// All lists the roles in start order.
func All() []string { return []string{Etcd, APIServer, Controllers, Nodes} }

// Known reports whether role is one of All.
func Known(role string) bool { return slices.Contains(All(), role) }

// Run turns this process into the given role and returns its exit code; args
// are that program's own flags. Etcd and APIServer are upstream's programs. The
// role Nodes is run by package fakenodes.
func Run(role string, args []string) int {
	switch role {
	case Etcd:
		etcdmain.Main(append([]string{"etcd"}, args...))
		return 0
	case APIServer:
		// cobra and the usage text read the program's name from here.
		os.Args = append([]string{"kube-apiserver"}, args...)
		return cli.Run(apiserver.NewAPIServerCommand())
	case Controllers:
		// Clients name the program in each request, and the API server notes it on each field that they write.
		os.Args = append([]string{"kube-controller-manager"}, args...)
		return controllers.Run(args)
	}
	fmt.Fprintf(os.Stderr, "role %q: unknown; roles are %s\n", role, strings.Join(All(), ", "))
	return 2
}
