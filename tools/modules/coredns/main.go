// Command coredns is CoreDNS with only the plugins that the local stack's Corefile needs, so that the Kubernetes
// client and the tracing and cloud libraries of the full build needn't be compiled. A full CoreDNS of the same
// version found on PATH does as well.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/hosts"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/ready"
)

// The order in which plugins see a query is that of the full build's plugin.cfg.
func init() {
	dnsserver.Directives = []string{"bind", "health", "ready", "errors", "log", "cache", "hosts"}
}

func main() {
	coremain.Run()
}
