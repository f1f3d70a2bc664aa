//! The guard's patterns by category, for normalised text: decoded, lower case, single spaces.

/// Category of instructions to the model.
pub(super) const PROMPT_OVERRIDE: &str = "prompt override";

/// A category and its patterns; the first that matches names the category.
pub(super) const ALL: &[(&str, &[&str])] = &[
    (PROMPT_OVERRIDE, PROMPT),
    ("path traversal", PATH),
    ("template injection", TEMPLATE),
    ("script", SCRIPT),
    ("XML entity", XML),
    ("SQL injection", SQL),
    ("query operator", OPERATOR),
    ("shell command", SHELL),
    ("code", CODE),
    ("header injection", HEADER),
    ("internal address", ADDRESS),
];

const PROMPT: &[&str] = &[
    r"\b(ignore|disregard|forget|override|bypass|neglect|overlook|skip)\b[^.?!]{0,30}\b(previous|prior|above|earlier|preceding|foregoing|before|your|system|initial|original|these|those|all)\b[^.?!]{0,20}\b(instructions?|prompts?|rules|guidelines|directives?|directions|programming|commands?|constraints)\b",
    r"\b(ignore|disregard|forget)\b (everything|anything|all|what)\b[^.?!]{0,25}\b(above|before|prior|previous|previously|told|said|wrote|learned)\b",
    r"\b(reveal|print|repeat|output|leak|show( me)?|display|give me|tell me|write down|recite)\b[^.?!]{0,30}\b(your|the|its|hidden|secret|initial|original|full|entire)\b[^.?!]{0,20}\b(system prompt|system message|hidden instructions|initial instructions|original instructions|secret instructions|initial prompt|original prompt|prompt above|instructions above)\b",
    r"\b(you are|you're) now (a |an |in |the |going to |acting )?[^.?!]{0,30}\b(dan|jailbr\w*|unrestricted|unfiltered|uncensored|developer mode|evil|amoral|free of|freed|not bound)\b",
    r"\b(developer|dan|jailbreak|god|unrestricted|unfiltered|opposite|dev) mode\b[^.?!]{0,30}\b(enabled|activated|on|output|engaged)\b",
    r"\bdo anything now\b|\bjailbr(eak|oken)\b.{0,40}\b(prompt|chatgpt|yourself|you)\b",
    r"\b(not|no longer) (be )?(bound|restricted|restrained|limited|constrained) by\b.{0,40}\b(rules|polic\w+|guidelines|openai|restrictions|filters|ethic\w*|moral\w*)\b",
    r"\b(act|behave|respond|answer|pretend|roleplay|role-play)\b[^.?!]{0,40}\b(unfiltered|uncensored|amoral|without (any )?(restrictions|filters?|ethic\w*|moral\w*|limitations|censorship))\b",
    r"\bfrom now on,? you(r|'re| are| will| must| have| shall)?\b[^.?!]{0,60}\b(act|going to|answer|respond|character|pretend|persona|obey|refuse|simulat\w+|name|chatgpt|ai)\b",
    r"\b(end|start|beginning) of (the )?(user|system) (input|prompt|instructions?|message)\b",
    r"<\|?(im_start|im_end|system|endoftext|begin_of_text)\|?>|\[/?inst\]|<<sys>>|### ?(system|instruction)s?:",
    r"\b(new|updated|real|actual) (system )?instructions?( for you)? ?(:|are\b|follow\b)",
    r"\bchatgpt\b.{0,80}\b(jailbr\w+|no restrictions|will never (refuse|say))\b",
    r"\bwhenever (an?|the) user prefixes\b|\bexact opposite of what (chat ?gpt|you)\b|\bignore (the )?(content|rest) of\b",
    r"\b(unfiltered|uncensored|amoral|unethical|immoral)\b[^.?!]{0,40}\b(chat ?gpt|ai|chatbot|assistant|model|persona|response|answer|advice)s?\b",
    r"\b(will|must|can|should|do|does) (never|not) (refuse|decline|reject|say (that )?(you|it) (can.t|cannot))\b",
    r"\b(two|both) (separate )?(responses|answers|personas?|personalit\w+|ways)\b[^.?!]{0,80}\b(chat ?gpt|gpt|jailbr|normal|classic|developer)\b",
    r"\bignorez (la|les|toutes?)\b|\bignoriere (die|alle)\b|\bignora (las|todas|le|tutte)\b",
];

const PATH: &[&str] = &[
    r"(\.\.+[\\/]+){2,}",
    r"\.\.[\\/]+(etc|windows|winnt|boot|proc|var|usr|root|home|\{file\})",
    r"/etc/+(\./+)*(passwd|shadow|hosts?|group|hostname|issue|motd|sudoers|ssh|apache2?|httpd|mysql|my\.cnf|nginx|php\w*|init\.d|crontab|fstab|inetd\.conf|resolv\.conf|security|vsftpd|proftpd|redhat-release|network|profile|bashrc|samba|logrotate|snmp|syslog)",
    r"/proc/(self|version|cmdline|\d+|mounts|stat|net|cpuinfo)",
    r"\bfile:/{2,}|[a-z]:\\+(windows|winnt|boot|inetpub|users|program files|xampp|apache|mysql|php|wamp)|[a-z]:/+(windows|winnt|boot\.ini|inetpub|xampp|apache|php)",
    r"\b(boot|win|php|my|desktop|system)\.ini\b|\bsystem32\b|\bwin(dows|nt)[\\/]+(system|repair|win\.ini|php)",
    r"\.(htaccess|htpasswd|bash_history|bashrc|ssh/|git/(config|head)|env\b|svn/)|\bid_rsa\b|\bweb\.config\b",
    r"/root/\.?\w+|/(access|error)[_.]log\b|/apache2?/(logs?|conf)/",
    r"%c0%a[ef]|%c1%9c|%e0%80%a[ef]|%uff0e|%u2215|%u2216|%uefc8|%f0%80|%f8%80|%fc%80|%c1%1c|%c0%2f|%c0%5c|%c0%2e|%%32|%25c0|%bg%qf|%ba%ae",
    r"\.{2,}[\\/]+[^ ]*\.{2,}[\\/]|(\.[\\/]+\\?){4,}|([\\/]\.){3,}|\.\?/\.\?/",
];

const TEMPLATE: &[&str] = &[
    r"\{\{[^}]{0,80}(\*|__|config\b|self\b|request\b|class\b|mro\b|constructor|\(|\.getclass|\|)",
    r"\$\{[^}]{0,60}(jndi|env:|lower:|upper:|sys:|runtime|java|\*|\(|@|class|\$|t\()",
    r"\$\{\w{1,12}\}",
    r"<%=?|%>",
    r"#\{[^}]{0,60}(\*|\(|exec|system|`)|\*\{[^}]{0,60}(\*|\(|java)|@\{[^}]{0,40}\}|@\([^)]{0,30}\*[^)]{0,30}\)",
    r"\{%-? ?(if|for|set|import|include|extends|macro|raw|end|debug|block)\b",
    r"<#(assign|if|list|include)|\?new\(\)|freemarker|__import__|__class__|__globals__|__subclasses__|__init__",
];

const SCRIPT: &[&str] = &[
    r"<[ /\\]*(x:|[a-z]+:)?script\b|</? ?script|\bscript ?>",
    r"<[a-z!/][^>]*[ /\x22'\x0b\x0c]on[a-z]{3,25} ?=",
    r"\bon(error|load|click|mouse\w{2,8}|focus\w{0,4}|blur|key\w{2,6}|submit|toggle|start|begin|end|pointer\w{2,12}|animation\w{3,12}|transition\w{3,9}|wheel|scroll|drag\w{0,6}|drop|copy|cut|paste|input|change|resize|unload|pageshow|hashchange|message|play\w{0,4}|canplay\w{0,7}|loadstart|loadeddata|finish|bounce|readystatechange|propertychange|beforeunload|contextmenu|select|show|search) ?= ?[\x22'`(\w]",
    r"j ?a ?v ?a ?s ?c ?r ?i ?p ?t ?:|vbscript ?:|livescript ?:|\bdata: ?(text/html|image/svg|application/x?html|text/xml|[,;])",
    r"<[ /]*(iframe|object|embed|applet|meta|base|frameset|frame|isindex|bgsound|layer|ilayer|xss|svg[ />]|math|marquee|keygen|noscript|noembed|plaintext|xmp|listing|textarea|template|portal|dialog)\b[^>]*[=>/]",
    r"<[ /]*(img|image|body|input|form|link|style|video|audio|source|track|table|td|tr|div|span|button|details|select|option|html|head|title|br|b|p|isindex|vmlframe|event-source|animate|set|comment|label|q|x|y|xml|!--|!\[cdata|!attlist|!doctype|!element|!entity|!#|\?xml)[^>]*(=|>)",
    r"document ?(\.|\[) ?[\x22']?(cookie|domain|location|write|body|url|referrer|getelement)|window ?(\.|\[) ?[\x22']?(location|name|open|onerror|alert)|location ?\.? ?(href|hash|assign|replace)? ?= ?[\x22'`]|top\[[\x22']|self\[[\x22']",
    r"\b(alert|prompt|confirm|eval|settimeout|setinterval|msgbox|print) ?(\(|`|/\*|&lpar)[^)]{0,60}(\)|`|$)|\b(alert|confirm|prompt)\)?\(",
    r"\bexpression ?\(|-moz-binding|behaviou?r ?: ?url|@import ?[\x22'(]|fromcharcode|\bsrcdoc ?=|xlink:href|\bhref ?= ?[\x22']?[^a-z0-9#/.]|formaction ?=|\bdatasrc ?=|url\( ?[\x22']?javascript",
    r"(\\x3c|\\u003c|\\74|%3c|\\074|&lt;?|&#0*60;?|&#x0*3c;?)/?(script|img|svg|iframe|body)",
    r"<!--.*(--|script|#exec|#include|\[if)|#(exec|include|echo) (cmd|virtual|file|var) ?=",
    r"\[\]\[[\x22'(\]!+]|\(\!\[\]\+|constructor(\]|\.)\[?\(?[\x22'(]?(constructor|prototype)|__proto__|\[constructor\]",
];

const XML: &[&str] = &[
    r"<!(doctype|entity|element|attlist)\b[^>]*[\[>\x22']",
    r"<\?xml[^>]*\?>.{0,20}<",
    r"^\x22?1\.0\x22\?><",
    r"<\?import\b|xmlns(:\w+)? ?=|<!\[cdata\[",
];

const SQL: &[&str] = &[
    r"\bunion\b ?(all |distinct |distinctrow )?[( ]*select\b|\bunion\b.{0,40}\bselect\b.{0,80}(,|\bfrom\b|null|--)",
    r"\bselect\b.*\bfrom\b[ (]*(information_schema|mysql\.|sys\.|sysobjects|syscolumns|dual\b|pg_|all_tab|user_tab|msys|master\.|users\b.{0,20}(where|--|;|limit)|sqlite_)",
    r"\(+ ?select ?[\w(@*'\x22].*\)|\bselect\b ?[(@]|\bselect ?(null|\*|count\(|concat|char\(|version|user\(|sleep|@@|load_file|group_concat|case when|convert\(|cast\()",
    r"[;')] ?(;|--|#)? ?\b(drop (table|database|user|schema|view|procedure|function)|delete from|insert into|alter (table|user|database)|truncate table|create (table|user|database|function|procedure)|exec(ute)? ?[\w@('\[]|shutdown\b ?(--|;|$|with)|declare @|waitfor\b|grant \w+ (on|to)\b|update \w+ set\b|backup database|restore database|dbcc |openrowset|bulk insert)",
    r"\b(drop|truncate|alter|create) (table|database|user|schema|view|procedure|function) \w+ ?(;|--|#|\()",
    r"\b(sleep|benchmark|pg_sleep|load_file|extractvalue|updatexml|xp_\w+|sp_\w+|randomblob|dbms_\w+|utl_\w+|sysdate|group_concat|database|current_user|session_user|system_user|substring|substr|ascii|char|chr|unhex|hex|concat|concat_ws|elt|ord|mid|bin|exp|floor|row_count|geometrycollection|polygon|multipoint|linestring|json_extract|json_depth|ctxsys\.\w+|xmltype|make_set|name_const|instr|is_srvrolemember|procedure analyse)\b(\.\w+)? ?\( ?[\w'\x22@(*)-]",
    r"\bwaitfor\b.{0,5}\b(delay|time)\b|@@(version|hostname|datadir|servername|basedir|global|spid|identity|language)|information_schema|\bsysobjects\b|\bpg_catalog\b|\bsqlite_master\b|\bsysusers\b|\bmsysobjects\b|\bxp_cmdshell\b|\binto (out|dump)file\b|\bload data infile\b",
    r"['\x22`)\]][ )'\x22]*\b(or|and|xor|like|rlike|regexp|having|where|div|mod|between|sounds like|procedure|limit|group by|order by|not|binary)\b[ (!~+-]*(@|null\b|true\b|false\b|exists ?\(|select\b|\d+ ?(=|<|>|,|--|#|or\b|and\b|like\b)|['\x22(]*\w*['\x22)]* ?(=|<|>|!=|like ?['\x22]|is null|is not null|in ?\(|between \d))",
    r"\b(or|and|xor|where|having|\|\||&&) ?[(!~ +-]*[\x22']?\w{1,12}[\x22']?\)* ?(=|<>|!=|<=>|>=|<=|<|>) ?\(*[\x22']?\w{0,12}[\x22']?.{0,6}(--|#|/\*|;|$)",
    r"\b(or|and|xor|\|\||&&) ?[(!~ +-]*(\d+) ?(=|<|>|<>|!=|like) ?\(?\d+",
    r"'\)* ?(--|#|/\*|\|\||&&|\+|=|<|>|!=|\*|%|\^|~)[ (]*(['@]|$|\d)|[\x22`]\)* ?(--|#|/\*|\|\||&&|=)[ (]*([\x22@]|$)",
    r"['`]\)* ?(--|#)|[\w)]--[ +]*$|;--|/\*!",
    r"\b(order|group) by \d+ ?(,|--|#|;|$)|\bhaving \d+ ?=|\blimit \d+ ?,? ?\d* ?(--|#|into\b|procedure\b|union\b)",
    r"(null ?, ?){2,}null|(\d, ?){6,}\d+|0x[0-9a-f]{4,},0x|\bnull,(concat|version|@@|user|load_file|\d)",
    r"^[ '\x22)(]*(or|and|union|having|xor|\|\||&&|procedure|into)\b[ (!~'\x22]*(\d|true|false|not|null|exists|select|sleep|benchmark|\w+ ?[=<>(])",
    r"\b(exec|execute)( immediate)? ?(master|xp_|sp_|\(|@|'|\[)|\bdeclare @|\bset @\w+ ?=|\bcase when\b.{0,60}\bthen\b|\bif ?\(.{1,60},.{1,40},|\brlike ?\(|\bbegin\b.{0,60}\bend\b;?",
    r"^ ?[('\x22]*\w{0,20}['\x22]\)* (or|and|like|between|union|having|group|order|where|limit|in|is)\b",
    r"\(\)? ?\w* ?\( ?select|\bselect\b[^?]{0,100}--|\bselect\b.{1,60}\bfrom\b.{1,60}\bwhere\b.{1,60}(=|<|>|\blike\b)",
];

const OPERATOR: &[&str] = &[
    r"\$(where|ne|gt|gte|lt|lte|regex|or|nin|exists|and|not|in|expr|func)\b['\x22]? ?(:|\]|=)|\[\$(ne|gt|gte|lt|lte|regex|nin|exists|in)\]",
    r"\bdb\.\w+\.(find|insert|remove|drop|update|mapreduce|aggregate)|this\.\w+\.(match|test)\(|\|\| ?\d ?== ?\d|; ?return (true|1|\d)",
    r"\*\)[ )]*\(|\)\( ?[|&!]|\(\|?\(\w+=\*|\(\w+=\*\)|^[*()|&!]+$|\*\)\(&|userpassword",
    r"__schema|introspectionquery|__typename",
];

const SHELL: &[&str] = &[
    r"(^|[;&|`\n(]) ?(\x22|'|\\)?(/usr)?(/s?bin/)?(whoami|uname|wget|curl|ifconfig|ipconfig|netcat|nslookup|powershell|chmod|chown|tftp|printenv|getent|systeminfo|tasklist|useradd|netstat|traceroute|phpinfo|xterm|telnet|lsof|crontab|rundll32|regsvr32|certutil|nmap)\b",
    r"[;&|`\n] ?(/usr)?(/s?bin/)?(cat|ls|id|ping|rm|nc|sleep|dir|echo|ps|type|net|sh|bash|zsh|ksh|csh|python\d?|perl|php|ruby|cmd|pwd|kill|dig|touch|cp|mv|find|awk|sed|tar|gcc|set|env|reg|more|less|head|tail|du|df|w|who|route|arp|finger|mail|ftp|ssh|scp|time|grep|exec|eval|read|test|which|sort|passwd|su|sudo|mount|date|shutdown|reboot|copy|del|move|ren|fetch|lynx|links|mkdir|lwp-\w+|rmt\w*)\b ?(-\w|/|\d|>|<|\$|\x22|'|\*|\.|[;&|#`]|%|$)",
    r"(^|[;&|`( =])/(usr/)?(local/)?s?bin/\w+|/dev/(tcp|udp|null)/?|\$\{?ifs\b|\d?>&\d|\bnc -[a-z]*[el]|\bcmd(\.exe)? ?/[ck]|\bpowershell(\.exe)? -|\bbash -[ic]\b|\bsh -c\b|\bperl -e\b|\bpython\d? -c\b|\bphp -r\b|\bruby -e\b",
    r"\$\([ `]*[a-z/({]|`[ /]*(/s?bin|cat|ls|id|dir|ping|rm|nc|sleep|echo|ps|sh|bash|curl|wget|whoami|uname|env|touch|kill)\b[^`]*`|`[a-z]+ +-[^`]*`|<\( ?[a-z]",
    r"\(\) ?\{ ?:;? ?\}|:\(\)\{|\{[a-z]+,[-/a-z.]|;[a-z]+\$|\bet'?c/pa'?ss|\x22 ?\|\||&& ?\w+ [-/]|\| ?(sh|bash|tee|xargs|nc|mail)\b",
    r"^ ?(;|\||&|&&|\|\|) ?[\w./\\-]+( [-\w./\\]+)? ?(;|\||&)?$",
    r"\b(ping|sleep|nslookup) (-\w )?(\d{1,3}\.|\d+ ?(;|&|\||$)|localhost)|\bwget https?:|\bcurl (-\w+ )?https?:|\bchmod [+\d]|\brm -r?f",
];

const CODE: &[&str] = &[
    r"<\?(php|=| )|\?>|\$_(get|post|server|request|cookie|files|env|session)\b|\$globals\b",
    r"\b(system|exec|passthru|shell_exec|popen|proc_open|fsockopen|base64_decode|assert|file_get_contents|file_put_contents|fopen|readfile|call_user_func|create_function|preg_replace|phpinfo|eval|unserialize|ini_set|include|require|include_once|require_once|curl_exec|ldap_\w+|mysql_\w+|posix_\w+|pcntl_\w+|ob_start|array_map|gzinflate|str_rot13|chr|ord|echo|print|printf|getenv|putenv|copy|unlink|chmod|is_file|opendir|scandir|glob|mail|header|die|exit|var_dump|dl|highlight_file|show_source)(%28| ?\()[\x22'$\w)]?",
    r"\bjava(x)?\.(lang|io|net|util|nio|beans|naming|sql|awt|rmi|management|script|xml|security)\b|\bruntime\.getruntime|processbuilder|\bcom\.(opensymphony|sun|mchange|ibatis)\b|\borg\.(apache|springframework|omg|codehaus|hibernate|jboss)\.|\bognl\b|@\w+\.\w+@|classloader|\bclonetransformer\b|forclosure|instantiatefactory|\bsun\.(reflect|misc)|\bynot found",
    r"\b(process|child_process|require|global|os|subprocess|builtins)\.(exec|spawn|popen|system|env|mainmodule|run|call)|\bimport (os|subprocess|socket)\b ?[;.]|\bo:\d+:\x22|\ba:\d+:\{|rO0AB|aced0005",
    r"\bwhile ?\( ?(true|1|!false) ?\)|\[php\]|\bperl -|@\{ ?\[|\bfunction ?\(\) ?\{",
];

const HEADER: &[&str] = &[
    r"[\n\r] ?(set-cookie|location|content-type|content-length|host|rcpt to|mail from|data|quit|bcc|cc|subject|capability|v\d{3} |x-\w+) ?:?",
    r"%0[ad]|%e5%98%8[ad]|\\r\\n ?[a-z-]+:",
];

const ADDRESS: &[&str] = &[
    r"169\.254\.169\.254|metadata\.google|/latest/(meta|user)-data|192\.0\.0\.192|\b(gopher|dict|expect|phar|php|zip|glob|ldaps?|jar|netdoc|sftp|tftp)://",
    r"^(https?:)?[/\\]{2,}[^ ]*(/%2e|/%2f|@|\.\.|[/\\]{2})|^/+(https?:|[\\/])|^https?:[^/]|^[\\/]{3,}\w|^(https?://)?\[?::|^https?://\[|^https?://[^ /]*(@|%|\\)",
    r"\bhttps?://(127\.|0\.0\.0\.0|localhost|10\.\d|192\.168\.|0x[0-9a-f]{2,}|\d{8,10}\b|0\d{2,}\.)|\b(oast|burpcollaborator|interact)\.\w+|\bsqlmap\b|\bnessus|\bopenvas|fuzz faster u fool|\bnasl\b",
];
