{{/* Whether one of these pools speaks gRPC, so that the program listens for it: "true" or nothing. */}}
{{- define "autoscaler.speaksGrpc" -}}
{{- range . -}}
{{- $server := default (dict) .server -}}
{{- if and (eq (default "" $server.kind) "triton") (ne (toString (default "port+1" $server.grpc_port)) "none") -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{/* The certificate of a section of the configuration, or nothing: (list . "tls"). */}}
{{- define "autoscaler.certificate" -}}
{{- $config := default (dict) (first .).Values.config -}}
{{- $file := get (default (dict) (get $config (last .))) "certificate" | default "none" | toString -}}
{{- if ne $file "none" -}}{{- $file -}}{{- end -}}
{{- end -}}

{{/* What clients speak to the data port: http or https. */}}
{{- define "autoscaler.scheme" -}}
{{- include "autoscaler.certificate" (list . "tls") | empty | ternary "http" "https" -}}
{{- end -}}

{{/* And at the port of gRPC, as an appProtocol. */}}
{{- define "autoscaler.grpcScheme" -}}
{{- eq (include "autoscaler.scheme" .) "https" | ternary "https" "kubernetes.io/h2c" -}}
{{- end -}}

{{/* Whether KEDA scales a pool: "true" or nothing. */}}
{{- define "autoscaler.hasKeda" -}}
{{- range .Values.pools -}}{{- if eq .platform.kind "keda" -}}true{{- end -}}{{- end -}}
{{- end -}}

{{/* Whether the program changes or asks a cluster: "true" or nothing. */}}
{{- define "autoscaler.hasKubernetes" -}}
{{- range .Values.pools -}}{{- if eq .platform.kind "kubernetes" -}}true{{- end -}}{{- end -}}
{{- end -}}

{{/* Whether a pool can be scaled from here, so that a second program would undo what the first does: "true" or nothing. */}}
{{- define "autoscaler.scales" -}}
{{- range .Values.pools -}}{{- if ne .platform.kind "static" -}}true{{- end -}}{{- end -}}
{{- end -}}

{{/* The configuration of a program that is alone. As JSON, which is YAML: it keeps large numbers whole, which toYaml does not. */}}
{{- define "autoscaler.config" -}}
{{- $config := mustFromJson (include "autoscaler.dataPlane" (list . .Values.pools)) -}}
{{- $_ := set $config "history" "/var/lib/autoscaler/autoscaler.db" -}}
{{- $_ := set $config "mode" .Values.mode -}}
{{- include "autoscaler.withKeda" (list . $config) -}}
{{- end -}}

{{/* Of the controllers, which read the demand of each pool at its sidecars or proxies. */}}
{{- define "autoscaler.controllerConfig" -}}
{{- $config := mustFromJson (include "autoscaler.given" .) -}}
{{- $_ := set $config "history" "/var/lib/autoscaler/autoscaler.db" -}}
{{- $_ := set $config "mode" .Values.mode -}}
{{- $_ := set $config "leadership" (dict "lease" (include "autoscaler.fullname" .)) -}}
{{- $pools := dict -}}
{{- range $name, $section := .Values.pools -}}
{{- $pool := deepCopy $section -}}
{{- if eq $.Values.topology "proxies" -}}
{{- $service := include "autoscaler.nameOf" (list $ "proxy-admin") -}}
{{- $_ := set $pool "demand" (merge (default (dict) $pool.demand) (dict "kind" "kubernetes" "service" $service "port" "admin" "doors" "proxies")) -}}
{{- else -}}
{{- $service := include "autoscaler.nameOf" (list $ (printf "%s-admin" $name)) -}}
{{- $_ := set $pool "demand" (default (dict "kind" "kubernetes" "service" $service "port" "admin") $pool.demand) -}}
{{- if eq $pool.platform.kind "kubernetes" -}}
{{- $_ := set $pool "platform" (merge (deepCopy $pool.platform) (dict "service" $service "port" "admin")) -}}
{{- end -}}
{{- /* Whether a pod is ready its sidecar says; a probe of the data port would count as a request. */ -}}
{{- $_ := set $pool "server" (dict "kind" "plain_http" "ready_path" "/readyz") -}}
{{- end -}}
{{- if $.Values.admin.tokenSecret -}}
{{- $_ := set $pool.demand "token_file" "/etc/autoscaler-admin/token" -}}
{{- end -}}
{{- $_ := set $pools $name $pool -}}
{{- end -}}
{{- $_ := set $config "pools" $pools -}}
{{- include "autoscaler.withKeda" (list . $config) -}}
{{- end -}}

{{/* Of the proxies, which the controllers tell what they may use. */}}
{{- define "autoscaler.proxyConfig" -}}
{{- $pools := dict -}}
{{- range $name, $section := .Values.pools -}}
{{- $pool := omit (deepCopy $section) "demand" "slots_per_replica" -}}
{{- $_ := set $pools $name (set $pool "platform" (dict "kind" "controller")) -}}
{{- end -}}
{{- include "autoscaler.dataPlane" (list . $pools) -}}
{{- end -}}

{{/* Of the sidecars of one pool, before the server of their pod: (list . "chat"). */}}
{{- define "autoscaler.sidecarConfig" -}}
{{- $root := first . -}}
{{- $name := last . -}}
{{- $server := index $root.Values.sidecars.servers $name -}}
{{- $pool := omit (deepCopy (index $root.Values.pools $name)) "demand" -}}
{{- $_ := set $pool "platform" (dict "kind" "static" "urls" (list (default "http://127.0.0.1:8000" $server.url))) -}}
{{- include "autoscaler.dataPlane" (list $root (dict $name $pool)) -}}
{{- end -}}

{{/* The configuration that is given, and who may ask the admin listener. */}}
{{- define "autoscaler.given" -}}
{{- $config := deepCopy (default (dict) .Values.config) -}}
{{- $_ := set $config "admin" ":8082" -}}
{{- if .Values.admin.tokenSecret -}}
{{- $_ := set $config "admin_access" (merge (dict "token_file" "/etc/autoscaler-admin/token") (default (dict) $config.admin_access)) -}}
{{- end -}}
{{- toJson $config -}}
{{- end -}}

{{/* What takes requests for these pools: (list . pools). */}}
{{- define "autoscaler.dataPlane" -}}
{{- $root := first . -}}
{{- $pools := last . -}}
{{- $config := mustFromJson (include "autoscaler.given" $root) -}}
{{- $drain := $root.Values.drain -}}
{{- $_ := set $config "listen" ":8080" -}}
{{- $_ := set $config "drain" (dict "grace" (printf "%ds" (int $drain.graceSeconds)) "max" (printf "%ds" (int $drain.maxSeconds))) -}}
{{- if include "autoscaler.speaksGrpc" $pools -}}
{{- $_ := set $config "grpc" (merge (dict "listen" ":8081") (default (dict) $config.grpc)) -}}
{{- end -}}
{{- $_ := set $config "pools" $pools -}}
{{- toPrettyJson $config -}}
{{- end -}}

{{/* A configuration, and the listener for KEDA if it is needed: (list . config). */}}
{{- define "autoscaler.withKeda" -}}
{{- $config := last . -}}
{{- if include "autoscaler.hasKeda" (first .) -}}
{{- $_ := set $config "keda" (merge (dict "listen" ":8083") (default (dict) $config.keda)) -}}
{{- end -}}
{{- toPrettyJson $config -}}
{{- end -}}
