<?php
// Converts the metadata of a partner (file in the first argument) into settings of SimpleSAMLphp (kind in the second argument).
require_once '/usr/share/simplesamlphp/lib/_autoload.php';

$found = SimpleSAML\Metadata\SAMLParser::parseDescriptorsString(file_get_contents($argv[1]));
echo "<?php\n";
foreach ($found as $id => $each) {
    $data = $argv[2] === 'saml20-idp-remote' ? $each->getMetadata20IdP() : $each->getMetadata20SP();
    unset($data['entityDescriptor']);
    echo '$metadata[' . var_export($id, true) . '] = ' . var_export($data, true) . ";\n";
}
